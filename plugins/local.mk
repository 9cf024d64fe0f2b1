include plugins/shadeform/local.mk
include plugins/static/local.mk
