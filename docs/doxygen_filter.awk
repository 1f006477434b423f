# Shows Doxygen our headers the way people read them:
# * "// text" in front of a declaration becomes "/// text", "code;  // text" becomes "code;  ///< text";
# * such a text speaks for all declarations up to the next text or blank line (a group: @{ ... @});
# * a member without any is told by the text of its type, which a type must have, and so is a function
#   on the lines right behind the type;
# * <, @, #, \ are text and no commands, `x` is set as code; lines indented by more keep their columns;
# * what every value has and nobody explains (comparisons, copies, moves) is left out.

function as_text(line) {
  gsub(/[\\@#<>&%"$]/, "\\\\&", line)
  while (match(line, /`[^`]+`/))
    line = substr(line, 1, RSTART - 1) "<tt>" substr(line, RSTART + 1, RLENGTH - 2) "</tt>" \
           substr(line, RSTART + RLENGTH)
  return line
}

function close_columns() {
  if (in_columns) said = said margin "/// </pre>\n"
  in_columns = 0
}

# A text in front of a namespace is about the file.
function print_text() {
  if (said != "" && /^namespace /) print "/// @file"
  printf "%s", said
  said = ""
}

function open_group() {
  print margin "/// @{"
  in_group = 1
}

function close_group() {
  if (in_group) print margin "/// @}"
  in_group = 0
}

# Braces that open less those that close, beside comments and quoted text.
function depth_change(line) {
  gsub(/"[^"]*"|'.'/, "", line)
  sub(/\/\/.*/, "", line)
  return gsub(/{/, "", line) - gsub(/}/, "", line)
}

BEGIN { is_scope[0] = 1 }  # depth -> declarations stand there, no statements

/operator(==|<=>)\(.*= default;/ { next }
/^ +[A-Za-z]+\([A-Za-z]*( const)?( ?&&?)?[a-z ]*\)( noexcept)?( = default)?;$/ { next }

/^ *\/\/( |$)/ && is_scope[depth] {
  match($0, /\/\//)
  text = substr($0, RSTART + 2)
  if (!in_text) close_group()
  margin = substr($0, 1, RSTART - 1)
  if (text ~ /^   /) {
    if (!in_columns) said = said margin "/// <pre>\n"
    in_columns = 1
  } else {
    close_columns()
  }
  text = as_text(text)
  said = said margin "///" text "\n"
  in_text = 1
  next
}

{ close_columns() }
# What a template is shows on its next line.
(/^ *template </ && !/;$/) || (held != "" && /^ *requires /) {
  held = held $0 "\n"
  next
}
{ print_text() }
is_scope[depth] && (/^ *$/ || /^ *}/ || /^ *(public|private|protected):/) { close_group() }

is_scope[depth] && !in_group && !/^ *($|}|public:|private:|protected:|template|struct|class|enum|union|namespace|#)/ {
  if (in_text)
    open_group()
  else if (is_type[depth] || last ~ /};$/) {
    margin = substr($0, 1, match($0, /[^ ]/) - 1)
    print margin "/// See the text of the type."
    open_group()
  }
}

{
  printf "%s", held
  held = ""
  in_text = 0
  change = depth_change($0)
  if (change > 0) {
    is_type[depth + 1] = $0 ~ /^ *(struct|class|union) /
    is_scope[depth + 1] = is_type[depth + 1] || $0 ~ /^namespace /
  }
  depth += change
  last = $0
}

/[^ ] +\/\/ / && !/^( *#|})/ {
  at = index($0, " // ")
  print substr($0, 1, at) "///<" as_text(substr($0, at + 3))
  next
}

{ print }
END { close_group() }
