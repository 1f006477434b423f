# Turns the aligned tables that a program prints into tab-separated rows, for bench/results/*.tsv: lines that end with a
# figure, its bar and a verdict, and lines with two spaces between columns and a number beyond the first. Where a line
# has four numbers or more, single spaces separate columns too. Everything else, headings among it, becomes a comment.
function is_number(text) { return text ~ /^[-+]?[0-9][0-9,.]*%?$/ }
{
  while (match($0, /[0-9] %/)) $0 = substr($0, 1, RSTART) "%" substr($0, RSTART + 3)
  sub(/^ +/, "")
  sub(/ +$/, "")
  numbers = apart = 0
  for (i = 1; i <= NF; ++i) numbers += is_number($i)
  columns = split($0, parts, /  +/)
  for (i = 2; i <= columns; ++i) apart += parts[i] ~ /(^| )[-+]?[0-9]/
}
$0 == "" { next }
$(NF - 2) ~ /^[<>]=$/ {
  label = $1
  for (i = 2; i <= NF - 4; ++i) label = label " " $i
  print label "\t" $(NF - 3) "\t" $(NF - 2) "\t" $(NF - 1) "\t" $NF
  next
}
columns < 2 || apart == 0 { print "# " $0; next }
numbers >= 4 { gsub(/ +/, "\t"); print; next }
{ gsub(/  +/, "\t"); print }
