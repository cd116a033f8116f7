package scrolls

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
)

// A knob sets one value of a policy, or says what is wrong with what was written.
type knob struct {
	typ cty.Type
	set func(p *Policy, v cty.Value) string
}

// policyKnobs and retryKnobs are what a policy block and the retry block in it hold.
var (
	policyKnobs = map[string]knob{
		"on_exhaust": {cty.String, func(p *Policy, v cty.Value) string {
			p.OnExhaust = v.AsString()
			if p.OnExhaust != "rollback" && p.OnExhaust != "keep" {
				return `it is "rollback" or "keep"`
			}
			return ""
		}},
		"timeout": {cty.String, durationKnob(func(p *Policy) *time.Duration { return &p.Timeout }, true)},
		"max_removes": {cty.Number, func(p *Policy, v cty.Value) string {
			if gocty.FromCtyValue(v, &p.MaxRemoves) != nil || p.MaxRemoves < 0 {
				return "it is a whole number, 0 or more"
			}
			return ""
		}},
	}
	retryKnobs = map[string]knob{
		"max_attempts": {cty.Number, func(p *Policy, v cty.Value) string {
			if gocty.FromCtyValue(v, &p.Retry.MaxAttempts) != nil || p.Retry.MaxAttempts < 1 {
				return "it is a whole number, 1 or more: the first try counts"
			}
			return ""
		}},
		"base_delay":  {cty.String, durationKnob(func(p *Policy) *time.Duration { return &p.Retry.BaseDelay }, false)},
		"max_delay":   {cty.String, durationKnob(func(p *Policy) *time.Duration { return &p.Retry.MaxDelay }, false)},
		"max_elapsed": {cty.String, durationKnob(func(p *Policy) *time.Duration { return &p.Retry.MaxElapsed }, false)},
		"backoff_multiplier": {cty.Number, func(p *Policy, v cty.Value) string {
			if gocty.FromCtyValue(v, &p.Retry.BackoffMultiplier) != nil || p.Retry.BackoffMultiplier < 1 {
				return "it is a number, 1 or more"
			}
			return ""
		}},
		"jitter_fraction": {cty.Number, func(p *Policy, v cty.Value) string {
			if gocty.FromCtyValue(v, &p.Retry.JitterFraction) != nil || p.Retry.JitterFraction < 0 || p.Retry.JitterFraction > 1 {
				return "it is a number from 0 to 1"
			}
			return ""
		}},
	}
)

// durationKnob reads a duration; positive refuses none at all, and what is next to it.
func durationKnob(at func(*Policy) *time.Duration, positive bool) func(*Policy, cty.Value) string {
	return func(p *Policy, v cty.Value) string {
		d, err := time.ParseDuration(v.AsString())
		switch {
		case err != nil:
			return `it is a duration in quotes, like "200ms", "30s" or "10m"`
		case d < 0:
			return "it must not be negative"
		case positive && d < time.Millisecond:
			return "it must be 1ms or longer"
		}
		*at(p) = d
		return ""
	}
}

// policyOf is a scroll's own policy over the one it inherits, knob by knob.
func (l *loader) policyOf(body *hclsyntax.Body, inherited Policy) Policy {
	policy := inherited
	var first *hclsyntax.Block
	for _, block := range body.Blocks {
		if block.Type != "policy" {
			continue
		}
		if first != nil {
			l.clash(block.DefRange(), first.DefRange(), "Duplicate policy", "A scroll has one policy block. Put the knobs into one.")
			continue
		}
		first = block
		l.readPolicy(block, &policy)
	}
	return policy
}

// readPolicy sets the knobs that a policy block writes.
func (l *loader) readPolicy(block *hclsyntax.Block, policy *Policy) {
	if len(block.Labels) > 0 {
		l.fail("Too many labels", "A policy block has no label.", block.LabelRanges[0])
	}
	l.turn(block.Body, "policy", policyKnobs, policy)
	var first *hclsyntax.Block
	for _, inner := range block.Body.Blocks {
		if inner.Type != "retry" {
			l.fail("Unsupported block type", fmt.Sprintf("A policy has no block %q.%s", inner.Type, didYouMean(inner.Type, []string{"retry"})), inner.DefRange())
			continue
		}
		if len(inner.Labels) > 0 {
			l.fail("Too many labels", "A retry block has no label.", inner.LabelRanges[0])
		}
		if first != nil {
			l.clash(inner.DefRange(), first.DefRange(), "Duplicate retry", "A policy has one retry block. Put the knobs into one.")
			continue
		}
		first = inner
		before := len(l.diags)
		l.turn(inner.Body, "retry", retryKnobs, policy)
		base, most := inner.Body.Attributes["base_delay"], inner.Body.Attributes["max_delay"]
		if r := policy.Retry; base != nil && most != nil && len(l.diags) == before && r.BaseDelay > r.MaxDelay {
			l.fail("Policy is not valid", fmt.Sprintf("base_delay: it is longer than max_delay: %s, and %s.", r.BaseDelay, r.MaxDelay), base.Expr.Range())
		}
		for _, deeper := range inner.Body.Blocks {
			l.fail("Unsupported block type", "A retry block has no blocks in it.", deeper.DefRange())
		}
	}
}

// turn sets the knobs that are written.
func (l *loader) turn(body *hclsyntax.Body, where string, knobs map[string]knob, policy *Policy) {
	for _, name := range sortedAttrs(body) {
		attr := body.Attributes[name]
		k, ok := knobs[name]
		if !ok {
			known := make([]string, 0, len(knobs))
			for knob := range knobs {
				known = append(known, knob)
			}
			l.fail("Unsupported argument", fmt.Sprintf("A %s block has no argument %q.%s", where, name, didYouMean(name, known)), attr.NameRange)
			continue
		}
		value, ok := l.value(attr.Expr, l.ctx)
		if !ok || value.IsNull() {
			continue
		}
		value, _ = value.UnmarkDeep()
		typed, err := convert.Convert(value, k.typ)
		if err == nil && k.typ == cty.String && value.Type() != cty.String {
			err = errors.New("not a string")
		}
		why := ""
		if err == nil {
			why = k.set(policy, typed)
		} else {
			why = k.set(&Policy{}, zero(k.typ))
		}
		if err != nil && why == "" {
			why = "it is a " + k.typ.FriendlyName()
		}
		if why != "" {
			l.fail("Policy is not valid", fmt.Sprintf("%s: %s.", name, why), attr.Expr.Range())
		}
	}
}

// zero is a value that no knob of the type takes, to learn what it would take.
func zero(t cty.Type) cty.Value {
	if t == cty.String {
		return cty.StringVal("")
	}
	return cty.NumberIntVal(-1)
}

// HostPolicy is the host's own policy as that of a root scroll, for what is done without
// a scroll. What is wrong with its file is *Diagnostics.
func HostPolicy(path string, facts map[string]any) (map[string]Policy, error) {
	l := &loader{o: Options{HostPolicy: path}, s: &Scroll{Files: map[string]*hcl.File{}}, facts: factsValue(facts), may: usual}
	l.in = l.newScope(nil, "", "", "", nil)
	l.ctx = l.in.ctx
	policy, err := l.hostPolicy()
	if err != nil {
		return nil, err
	}
	if l.diags.HasErrors() {
		return nil, &Diagnostics{All: quieter(l.diags), Files: l.s.Files}
	}
	return map[string]Policy{"": policy}, nil
}

// leadsNowhere says whether a file, or its directory, is a link to what is not there:
// somebody meant something by it.
func leadsNowhere(name string) bool {
	for _, p := range []string{name, filepath.Dir(name)} {
		_, err := os.Stat(p)
		if _, lerr := os.Lstat(p); lerr == nil && errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// hostPolicy reads the host's own policy, which is validated as a scroll is. No file
// is no policy.
func (l *loader) hostPolicy() (Policy, error) {
	if l.o.HostPolicy == "" {
		return BuiltinPolicy, nil
	}
	src, err := readSource("host policy", l.o.HostPolicy)
	if errors.Is(err, fs.ErrNotExist) && !leadsNowhere(l.o.HostPolicy) {
		return BuiltinPolicy, nil
	}
	if err != nil {
		return Policy{}, err
	}
	file, diags := parseFile(src, l.o.HostPolicy)
	l.s.Files[l.o.HostPolicy] = file
	l.diags = append(l.diags, diags...)
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok || diags.HasErrors() {
		return BuiltinPolicy, nil
	}
	for _, name := range sortedAttrs(body) {
		l.fail("Unsupported argument", "A host's golem.hcl holds a policy block, and nothing else.", body.Attributes[name].NameRange)
	}
	for _, block := range body.Blocks {
		switch {
		case block.Type == "policy":
		case reserved[block.Type]:
			l.fail("Not available in this version", fmt.Sprintf("%q is a word of the language that this golem does not enact yet.", block.Type), block.DefRange())
		default:
			l.fail("Unsupported block type", "A host's golem.hcl holds a policy block, and nothing else."+didYouMean(block.Type, []string{"policy"}), block.DefRange())
		}
	}
	// The host's file is nobody's scroll: no scroll's variables are seen in it.
	defer l.enter(l.in, &hcl.EvalContext{Variables: map[string]cty.Value{"host": l.facts}})()
	return l.policyOf(body, BuiltinPolicy), nil
}
