package e2e

import (
	"encoding/xml"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// awkward are names that a drawing could take for something else.
var awkward = []string{
	`/etc/a"b`, `/etc/a\b`, `/etc/a\"`, `/etc/<b>bold</b>`, `/etc/#35;`, "/etc/`code`", `/etc/*stars*_lines_`, `/etc/ü→∞`, `/etc/a]b[c`, `/etc/a;b`, `/etc/%%{x}`,
	`/etc/end`, `/etc/&amp;`, `/etc/a|b`, `/etc/{x}`,
}

// awkwardScroll declares a file of each name, in modules whose keys are as awkward.
func awkwardScroll(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	var scroll strings.Builder
	scroll.WriteString("name = \"a b-c\"\nscroll \"plain\" {\n")
	for _, name := range awkward {
		scroll.WriteString("  file " + strings.NewReplacer("%%{", "%%%{").Replace(strconv.Quote(name)) + " { content = \"\" }\n")
	}
	scroll.WriteString("}\nscroll \"each\" {\n  for_each = toset([\"a/b\", \"c\\\"d\", \"e]f\"])\n  file \"f\" {\n    path = \"/etc/each-${md5(each.key)}\"\n    content = \"\"\n  }\n}\n")
	s.declare(t, strings.Replace(scroll.String(), "a b-c", "abc", 1))
	return s
}

// TestMermaidOfAwkwardNamesIsOneNodeEach reads the flowchart by Mermaid's grammar: one node or
// edge a line, texts in quotes with what is markup as numbers.
func TestMermaidOfAwkwardNamesIsOneNodeEach(t *testing.T) {
	t.Parallel()
	s := awkwardScroll(t)
	lines := strings.Split(strings.TrimSpace(s.run(t, 0, "graph").stdout), "\n")
	if lines[0] != "flowchart LR" {
		t.Fatalf("it begins with %q", lines[0])
	}
	node := regexp.MustCompile("^  (n\\d+)\\[\"([^\"<>`\\\\]*)\"\\]$")
	edge := regexp.MustCompile(`^  (n\d+) --> (n\d+)$`)
	class := regexp.MustCompile(`^  classDef ([a-z]+) fill:#[0-9a-f]{6},color:#000$`)
	member := regexp.MustCompile(`^  class ((?:n\d+,?)+) ([a-z]+)$`)
	number := regexp.MustCompile(`#(\d+);`)
	texts := map[string]string{}
	var classes, under []string
	for _, line := range lines[1:] {
		switch {
		case node.MatchString(line):
			m := node.FindStringSubmatch(line)
			texts[m[1]] = number.ReplaceAllStringFunc(m[2], func(n string) string {
				code, _ := strconv.Atoi(strings.Trim(n, "#;"))
				return string(rune(code))
			})
		case edge.MatchString(line):
			m := edge.FindStringSubmatch(line)
			under = append(under, m[2])
			if texts[m[1]] == "" || texts[m[2]] == "" {
				t.Errorf("an edge of a node that there is not: %s", line)
			}
		case class.MatchString(line):
			classes = append(classes, class.FindStringSubmatch(line)[1])
		case member.MatchString(line) && slices.Contains(classes, member.FindStringSubmatch(line)[2]):
		default:
			t.Errorf("no line of a flowchart: %s", line)
		}
	}
	if len(under) != len(texts)-1 {
		t.Errorf("%d nodes and %d edges are no tree", len(texts), len(under))
	}
	drawn := map[string]bool{}
	for _, text := range texts {
		drawn[text] = true
	}
	for _, name := range awkward {
		if !drawn["+ file:"+keyPart(name)] {
			t.Errorf("%s is not drawn: %q", name, texts)
		}
	}
}

// keyPart escapes a path as keys have it.
func keyPart(path string) string {
	return strings.NewReplacer("%", "%25", ":", "%3A", "[", "%5B", "]", "%5D").Replace(path)
}

// TestDotOfAwkwardNamesIsDrawn has Graphviz draw the graph, where it is installed; its strings are
// looked at without it, too.
func TestDotOfAwkwardNamesIsDrawn(t *testing.T) {
	t.Parallel()
	s := awkwardScroll(t)
	text := s.run(t, 0, "graph", "--format", "dot").stdout
	label := regexp.MustCompile(`^  n\d+ \[label = "(?:[^"\\]|\\\\|\\")*"(?:, fillcolor = "#[0-9a-f]{6}", tooltip = "[a-z]+")?\]$`)
	edge := regexp.MustCompile(`^  n\d+ -> n\d+$`)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[3 : len(lines)-1] {
		if !label.MatchString(line) && !edge.MatchString(line) {
			t.Errorf("no line of a graph: %s", line)
		}
	}
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(dot, "-Tsvg")
	cmd.Stdin = strings.NewReader(text)
	svg, err := cmd.Output()
	if err != nil {
		t.Fatalf("dot: %v\n%s", err, text)
	}
	drawn := map[string]bool{}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if chars, ok := token.(xml.CharData); ok {
			drawn[string(chars)] = true
		}
	}
	for _, name := range awkward {
		if !drawn["+ file:"+keyPart(name)] {
			t.Errorf("%s is not drawn:\n%s", name, svg)
		}
	}
}
