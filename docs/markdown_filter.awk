# Makes a page of the API reference from a page in Markdown: README.md is the main page. Doxygen's own Markdown would
# take the [x][y] of our texts for links, so only what our pages use is known here: headings, paragraphs, lists, tables,
# fenced and indented blocks, images, links, code and bold text.
function escaped(line) {
  gsub(/[\\@#<>&%"$]/, "\\\\&", line)
  gsub(/--/, "\\--", line)  # else a dash
  return line
}

function as_text(line,   text) {
  line = escaped(line)
  while (match(line, /\*\*[^*]+\*\*/))
    line = substr(line, 1, RSTART - 1) "<b>" substr(line, RSTART + 2, RLENGTH - 4) "</b>" substr(line, RSTART + RLENGTH)
  while (match(line, /`[^`]+`/))
    line = substr(line, 1, RSTART - 1) "<tt>" substr(line, RSTART + 1, RLENGTH - 2) "</tt>" substr(line, RSTART + RLENGTH)
  while (match(line, /\[[^]]*\]\([^)]*\)/)) {
    text = substr(line, RSTART + 1, RLENGTH - 2)
    line = substr(line, 1, RSTART - 1) link(substr(text, 1, index(text, "](") - 1), substr(text, index(text, "](") + 2)) \
           substr(line, RSTART + RLENGTH)
  }
  return line
}

# A page of the reference is a link; other files are named only.
function link(text, target,   name) {
  sub(/\\#.*/, "", target)
  name = target
  sub(/examples\/README\.md$/, "examples.md", name)
  sub(/.*\//, "", name)
  if (name ~ /^(start|guide|tools|examples)\.md$/)
    return "@ref page_" substr(name, 1, length(name) - 3) " \"" text "\""
  return text
}

# Text of a paragraph is kept until it ends, because a link may be cut by the end of a line.
function flush() {
  if (paragraph != "") print "/// " as_text(paragraph)
  paragraph = ""
  if (in_table) print "/// </table>"
  in_table = 0
}

function row(line, tag,   cells, n, i) {
  n = split(substr(line, 2, length(line) - 2), cells, /\|/)
  printf "/// <tr>"
  for (i = 1; i <= n; ++i) printf "<%s>%s</%s>", tag, as_text(cells[i]), tag
  print "</tr>"
}

BEGIN {
  page = ARGV[1]
  if (page ~ /examples\/README\.md$/) page = "examples"
  sub(/.*\//, "", page)
  sub(/\.md$/, "", page)
}

/^```/ {
  if (!in_code) flush()
  print in_code ? "/// </pre>" : "/// <pre>"
  in_code = !in_code
  next
}
in_code { print "/// " escaped($0); next }
/^    / && paragraph == "" { flush(); print "/// <pre>"; print "/// " escaped(substr($0, 5)); print "/// </pre>"; next }
/^# / {
  print page == "README" ? "/// @mainpage " substr($0, 3) : "/// @page page_" page " " substr($0, 3)
  next
}
/^##+ / {
  flush()
  level = index($0, " ") - 1
  print "/// @" (level == 2 ? "section" : "subsection") " " page "_" ++sections " " as_text(substr($0, level + 2))
  next
}
/^!\[/ {
  flush()
  file = $0
  gsub(/.*\/|\)$/, "", file)
  text = substr($0, 3, index($0, "](") - 3)
  print "/// @image html " file " \"" text "\""
  next
}
/^\|[ -|:]+$/ && in_table && !/[a-z0-9]/ { next }
# The programs that the table of examples/README.md lists are examples of the reference.
page == "examples" && /^\| `/ && match($2 $3, /[a-z_]+\.cpp/) {
  programs[++count] = substr($2 $3, RSTART, RLENGTH)
  said[count] = substr($0, 3 + index(substr($0, 3), "|"))
}
/^\|/ {
  if (!in_table) { flush(); print "/// <table>"; in_table = 1; row($0, "th") }
  else row($0, "td")
  next
}
/^ *$/ { flush(); print "///"; next }
/^ *\* / { flush(); match($0, /\*/); paragraph = substr($0, 1, RSTART - 1) "- " substr($0, RSTART + 2); next }
{ sub(/^ +/, ""); paragraph = paragraph == "" ? $0 : paragraph " " $0 }
END {
  flush()
  for (i = 1; i <= count; ++i) print "\n/// @example " programs[i] "\n/// " as_text(substr(said[i], 1, length(said[i]) - 2))
}
