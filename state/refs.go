package state

import (
	"bytes"
	"encoding/json"

	"golem/scrolls"
)

// blobsIn returns every hash that a JSON body names in a field "blob", at any depth.
func blobsIn(body json.RawMessage) []string {
	if !bytes.Contains(body, []byte(`"blob"`)) {
		return nil
	}
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	var hashes []string
	walk(v, func(m map[string]any) {
		if hash, ok := m["blob"].(string); ok && hash != "" {
			hashes = append(hashes, hash)
		}
	})
	return hashes
}

// fileRefs returns the hashes of the local files that a glyph's attributes stand for.
func fileRefs(g *scrolls.Glyph) []string {
	var hashes []string
	walk(map[string]any(g.Attrs), func(m map[string]any) {
		hash, ok := m["sha256"].(string)
		_, path := m["path"].(string)
		_, size := m["size"].(json.Number)
		if ok && path && size && len(m) == 3 {
			hashes = append(hashes, hash)
		}
	})
	return hashes
}

// walk calls each for every object in a JSON value.
func walk(v any, each func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		each(v)
		for _, e := range v {
			walk(e, each)
		}
	case []any:
		for _, e := range v {
			walk(e, each)
		}
	}
}
