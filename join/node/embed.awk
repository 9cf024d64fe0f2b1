# embed.awk - shell files to C strings; comment lines and blank lines stay behind
function name(path) { sub(/.*\//, "", path); sub(/\.sh$/, "", path); return path }
# awks differ on backslashes in gsub's replacement, so character by character
function escape(line,   i, c, out) {
  for (i = 1; i <= length(line); i++) {
    c = substr(line, i, 1)
    out = out (c == "\\" || c == "\"" ? "\\" : "") c
  }
  return out
}
BEGIN {
  print "/* generated from the shell in join/node */"
  print "#include \"join/ssh_script.h\"\n"
  print "const struct node_script node_scripts[] = {"
}
FNR == 1 { if (NR > 1) print "  },"; printf "  { \"%s\",\n", name(FILENAME) }
/^[ \t]*#/ || /^[ \t]*$/ { next }
{ printf "    \"%s\\n\"\n", escape($0) }
END { print "  },\n  { NULL, NULL },\n};" }
