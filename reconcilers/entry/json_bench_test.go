package entry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// largeJSON is a text of about some megabytes.
func largeJSON(megabytes int) []byte {
	var b bytes.Buffer
	b.Grow(megabytes<<20 + 1024)
	b.WriteString("{\n  \"list\": [\n")
	for i := 0; b.Len() < megabytes<<20; i++ {
		fmt.Fprintf(&b, "    {\"id\": %d, \"name\": \"member \\u00e9 %d\", \"tags\": [\"a\", \"b\"], \"ratio\": %d.5e-3, \"on\": true},\n", i, i, i)
	}
	b.WriteString("    {}\n  ],\n  \"last\": {\"key\": 1}\n}\n")
	return b.Bytes()
}

func TestJSONTakesFewAllocationsForMuchText(t *testing.T) {
	text := largeJSON(2)
	w := Wish{Steps: dotted("last.key"), Value: json.Number("2")}
	if n := testing.AllocsPerRun(1, func() { _, _, _ = jsonFormat{}.Put(text, w) }); n > 100 {
		t.Errorf("changing one key of a large text allocates %v times", n)
	}
}
