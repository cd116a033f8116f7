package reconcilers

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"golem/state"
)

// ledger reads the ledger's line about a directory.
func (w *World) ledger(dir string) (ledgerBody, bool) {
	entry, ok := w.Ledger[RecordKey(PathSort, dir)]
	if !ok || entry == nil {
		return ledgerBody{}, false
	}
	var body ledgerBody
	if json.Unmarshal(entry.Body, &body) != nil {
		return ledgerBody{}, false
	}
	return body, true
}

// setLedger notes a change of the ledger in the step, and in the world, where the
// turns after it find it. A nil body takes the line out.
func (t *Turn) setLedger(w *World, dir string, body *ledgerBody) { setEntry(t, w, PathSort, dir, body) }

// setEntry is setLedger for a resource of any sort.
func setEntry[T any](t *Turn, w *World, sort, resource string, body *T) {
	key := RecordKey(sort, resource)
	change := state.LedgerChange{Sort: sort, Resource: resource, Before: w.Ledger[key]}
	if body != nil {
		change.After = &state.Entry{Sort: sort, Resource: resource, Body: encode(body)}
		w.Ledger[key] = change.After
	} else {
		delete(w.Ledger, key)
	}
	if change.Before != nil || change.After != nil {
		t.Step.Ledger = append(t.Step.Ledger, change)
	}
}

// Removes says whether a turn takes its resource away.
func (t *Turn) Removes() bool {
	if k, ok := t.work.(*pkgWork); ok {
		return k.takes()
	}
	if t.Sort == imageSort {
		return t.Acts
	}
	return t.Acts && t.shift != nil && t.shift.to.Type == Absent
}

// ByProductName is how a by-product is called where its sort is not told: a directory by
// its path, a package by a key, an image by its engine and name.
func ByProductName(t *Turn) string {
	if t.Sort == PackageSort {
		return string(packageKey(t.Resource))
	}
	if t.Sort == imageSort {
		return RecordKey(imageSort, t.Resource)
	}
	return t.Resource
}

// ByProductTitle is what stands above the by-products of a sort.
func ByProductTitle(sort string) string {
	switch sort {
	case PackageSort:
		return "Packages golem brought along, or that made way"
	case PathSort:
		return "Directories golem made on the way"
	case imageSort:
		return "Images golem pulled"
	}
	return ""
}

// ByProductText says what becomes of a by-product.
func ByProductText(t *Turn) string {
	k, ok := t.work.(*pkgWork)
	switch why := ByProductLeft(t); {
	case why != "":
		return "left as it is: " + why
	case ok && k.takes():
		return k.sweepText()
	case ok:
		return "version " + k.want.Version + " comes back: what it made way for is gone"
	case t.Removes():
		return "removed: nothing needs it any more"
	}
	return "its owner follows the directory it lies in"
}

// ByProductLeft says why a by-product that nothing declared needs any more stays on the
// host; "" for one that does not, or of which the plan has nothing to say.
func ByProductLeft(t *Turn) string {
	if k, ok := t.work.(*soleWork[imageState]); ok && !t.Acts {
		return k.g.reason
	}
	return ""
}

// someNames lists names for a person: the first few, and how many more.
func someNames(names []string) string {
	sort.Strings(names)
	const most = 3
	shown := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, quote(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// A Lasting is a reconciler that can say whether a by-product is still there.
type Lasting interface {
	There(w *World, resource string) (bool, error)
}

// A ledgerBody is a by-product of paths: a directory golem made on the way to
// something, or what it found of one that was there.
type ledgerBody struct {
	Made bool `json:"made"`
	Node Node `json:"node"`
	// Lent is the package that golem brought and that made the directory; "" for none.
	Lent string `json:"lent,omitempty"`
}
