# Debian package descriptions (deb822 stanzas) to the jsonl form of .import: a package is a row, a field a cell.
# What is prose goes to the family text, the rest to pkg. Progress goes to stderr.

function quoted(value) {
    gsub(/\\/, "\\\\&", value)
    gsub(/"/, "\\\"", value)
    gsub(/\t/, "\\t", value)
    gsub(/\n/, "\\n", value)
    gsub(/[\001-\037]/, " ", value)
    return "\"" value "\""
}

function end_field() {
    if (field == "")
        return
    if (field == "Package")
        row = value
    family = field ~ /^(Description|Homepage|Tag|Task|Maintainer|Original-Maintainer|Bugs|Conffiles)/ ? "text" : "pkg"
    cells = cells (cells == "" ? "" : ", ") quoted(family ":" field) ": " quoted(value)
    field = ""
}

function end_package() {
    end_field()
    if (row != "") {
        print "{\"row\": " quoted(row) ", \"cells\": {" cells "}}"
        if (++packages % 5000 == 0)
            print packages " packages" > "/dev/stderr"
    }
    row = cells = ""
}

/^$/ { end_package(); next }
/^[ \t]/ { value = value "\n" substr($0, 2); next }
/^[A-Za-z0-9-]+:/ {
    end_field()
    colon = index($0, ":")
    field = substr($0, 1, colon - 1)
    value = substr($0, colon + 1)
    sub(/^[ \t]+/, "", value)
}

END { end_package() }
