package reconcilers

import (
	"path"
	"strings"

	"golem/scrolls"
)

// commentNames are files that are known by their whole name.
var commentNames = map[string]string{
	"php.ini": ";", ".vimrc": `"`, "vimrc": `"`, "vimrc.local": `"`, ".xdefaults": "!", ".xresources": "!",
	".emacs": ";", ".gvimrc": `"`, ".exrc": `"`, "named.conf": "//",
}

// commentTypes are the comments of files by the ends of their names. What is not in it has
// "#", as nearly all that lies in /etc; nothing is for those that have none.
var commentTypes = map[string]string{
	"json": "", "csv": "", "tsv": "",
	"jsonc": "//", "json5": "//", "js": "//", "mjs": "//", "cjs": "//", "ts": "//", "jsx": "//", "tsx": "//",
	"c": "//", "h": "//", "cc": "//", "cpp": "//", "hpp": "//", "cs": "//", "go": "//", "rs": "//", "java": "//",
	"kt": "//", "swift": "//", "scala": "//", "groovy": "//", "gradle": "//", "php": "//", "proto": "//", "scss": "//",
	"less": "//", "dart": "//", "zig": "//", "kdl": "//",
	"ini": ";", "zone": ";", "lisp": ";", "el": ";", "scm": ";", "clj": ";", "asm": ";", "reg": ";",
	"sql": "--", "lua": "--", "hs": "--", "adb": "--", "ads": "--", "vhd": "--",
	"tex": "%", "sty": "%", "erl": "%",
	"vim": `"`, "bat": "REM", "cmd": "REM", "m4": "dnl", "xresources": "!", "xdefaults": "!",
	"html": "<!-- -->", "htm": "<!-- -->", "xml": "<!-- -->", "svg": "<!-- -->", "xhtml": "<!-- -->", "xsl": "<!-- -->",
	"xsd": "<!-- -->", "plist": "<!-- -->", "md": "<!-- -->", "rss": "<!-- -->", "vue": "<!-- -->",
	"css": "/* */", "ml": "(* *)",
}

// commentStyle is how a line becomes a comment in a file, by its name; "" where none can.
func commentStyle(p string) string {
	name := strings.ToLower(path.Base(p))
	if style, ok := commentNames[name]; ok {
		return style
	}
	if style, ok := commentTypes[strings.TrimPrefix(path.Ext(name), ".")]; ok {
		return style
	}
	return "#"
}

// commentParts are what a commented line begins and ends with.
func commentParts(a scrolls.Attrs) (first, last string) {
	style, ok := a["comment"].(string)
	if !ok {
		style = commentStyle(str(a, "path"))
	}
	first, last, _ = strings.Cut(strings.Trim(style, " \t"), " ")
	return first, strings.Trim(last, " \t")
}
