# shadeform
