package scrolls

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

func decodeURL(s string) (string, error) {
	out, err := url.QueryUnescape(s)
	if err != nil {
		return "", fmt.Errorf("it is not URL-encoded: %w", err)
	}
	if !utf8.ValidString(out) {
		return "", fmt.Errorf("what it holds is not UTF-8")
	}
	return out, nil
}

// charset is a character encoding by its IANA name.
func charset(arg cty.Value) (encoding.Encoding, error) {
	found, err := ianaindex.IANA.Encoding(arg.AsString())
	if err != nil || found == nil {
		return nil, function.NewArgErrorf(1, "%q is no character encoding that golem knows, like \"UTF-16LE\"", arg.AsString())
	}
	return found, nil
}

// recoded makes a function of a text and the name of a character encoding.
func recoded(name string, fn func(text string, in encoding.Encoding) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: name, Type: cty.String}, {Name: "encoding", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			in, err := charset(args[1])
			if err != nil {
				return cty.NilVal, err
			}
			out, err := fn(args[0].AsString(), in)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(out), nil
		},
	})
}

// textEncodeFunc writes a text in another character encoding, as base64; textDecodeFunc
// reads it again.
var (
	textEncodeFunc = recoded("text", func(text string, in encoding.Encoding) (string, error) {
		out, err := in.NewEncoder().Bytes([]byte(text))
		if err != nil {
			return "", fmt.Errorf("the encoding has not all of its characters")
		}
		return base64.StdEncoding.EncodeToString(out), nil
	})
	textDecodeFunc = recoded("base64", func(text string, in encoding.Encoding) (string, error) {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return "", fmt.Errorf("it is not base64: %w", err)
		}
		out, err := in.NewDecoder().Bytes(raw)
		if err != nil {
			return "", fmt.Errorf("it is not text of this encoding: %w", err)
		}
		return string(out), nil
	})
)

// namespaces of names that uuidv5 knows by theirs (RFC 9562, section 6.6).
var namespaces = map[string]uuid.UUID{
	"dns": uuid.NameSpaceDNS, "url": uuid.NameSpaceURL, "oid": uuid.NameSpaceOID, "x500": uuid.NameSpaceX500,
}

// uuidFunc is the UUID of a name in a namespace, always the same.
var uuidFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "namespace", Type: cty.String}, {Name: "name", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		space, ok := namespaces[args[0].AsString()]
		if !ok {
			var err error
			if space, err = uuid.Parse(args[0].AsString()); err != nil {
				return cty.NilVal, function.NewArgErrorf(0, "it is neither dns, url, oid or x500 nor a UUID")
			}
		}
		return cty.StringVal(uuid.NewSHA1(space, []byte(args[1].AsString())).String()), nil
	},
})
