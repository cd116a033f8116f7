package entry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"
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

// BenchmarkJSON50MB changes one key of a 50 MB text, and prints how many times the time of
// one parse by encoding/json that takes, and how many times the text's size it takes in
// memory.
func BenchmarkJSON50MB(b *testing.B) {
	text := largeJSON(50)
	w := Wish{Steps: dotted("last.key"), Value: json.Number("2")}
	started := time.Now()
	if !json.Valid(text) {
		b.Fatal("the benchmark's text is no JSON")
	}
	parse := time.Since(started)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		out, receipt, err := jsonFormat{}.Put(text, w)
		if err != nil || receipt == nil {
			b.Fatal(err)
		}
		if len(out) != len(text) {
			b.Fatal("the text was not edited")
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(parse), "parses")
}

func TestJSONTakesFewAllocationsForMuchText(t *testing.T) {
	text := largeJSON(2)
	w := Wish{Steps: dotted("last.key"), Value: json.Number("2")}
	if n := testing.AllocsPerRun(1, func() { _, _, _ = jsonFormat{}.Put(text, w) }); n > 100 {
		t.Errorf("changing one key of a large text allocates %v times", n)
	}
}
