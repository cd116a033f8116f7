package scrolls

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// What a scroll may ask for. A few lines can ask for all memory there is, by values that
// double, loops in loops or text that is put into itself.
const (
	// maxSourceFile is the largest file of HCL, maxWords how many words and signs it may
	// have: a parsed one takes some hundred bytes.
	maxSourceFile = 64 << 20
	maxWords      = 3_000_000
	// maxValue bounds one value, all that is in it counted: the bytes of texts, and
	// valueCost for each value.
	maxValue  = 64 << 20
	valueCost = 16
	// maxDeclared bounds the glyphs, and the instances of blocks, of a scroll.
	maxDeclared = 100_000
	// maxMemory and maxWork bound what no count sees: what loading adds to the memory in
	// use, and the processor's time for one expression, or for what is parsed.
	maxMemory = 2 << 30
	maxWork   = 30 * time.Second
)

// allowance is what loading may take.
type allowance struct {
	value    int
	declared int
	memory   uint64
	work     time.Duration
}

var usual = allowance{maxValue, maxDeclared, maxMemory, maxWork}

// A mark is what a loader is at.
type mark struct {
	at   hcl.Range
	file *hcl.File
}

// at notes what is worked out from now on.
func (l *loader) at(place hcl.Range) {
	l.now.Store(&mark{at: place, file: l.s.Files[place.Filename]})
}

// worked is the processor's time that golem has used.
func worked() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// guarded loads a scroll, and gives up where that takes too much. An expression cannot be
// stopped: what is given up goes on until the process ends, and a loader is of no use then.
func (l *loader) guarded(load func() error) (*Scroll, error) {
	done := make(chan error, 1)
	go func() { done <- load() }()
	const every = 20 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	limit := inUse() + l.may.memory
	var last *mark
	since := worked() // of the last mark
	for {
		select {
		case err := <-done:
			return l.loaded(err)
		case <-l.o.Interrupt:
			return nil, context.Canceled
		case <-tick.C:
		}
		now := l.now.Load()
		if now != last {
			last, since = now, worked()
		}
		switch {
		case inUse() > limit && stillInUse() > limit:
			return nil, now.tooMuch(fmt.Sprintf("more than %d MiB of memory", l.may.memory>>20))
		case worked()-since > l.may.work:
			return nil, now.tooMuch(fmt.Sprintf("more than %s", l.may.work))
		}
	}
}

// loaded is the scroll, once everything has been looked at.
func (l *loader) loaded(err error) (*Scroll, error) {
	switch {
	case err != nil:
		return nil, err
	case l.diags.HasErrors():
		return nil, &Diagnostics{All: quieter(l.diags), Files: l.s.Files}
	}
	l.s.Digest = l.seen.sum()
	return l.s, nil
}

func inUse() uint64 {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return heap[0].Value.Uint64()
}

// stillInUse is inUse without what is left behind already.
func stillInUse() uint64 {
	runtime.GC()
	return inUse()
}

// tooMuch tells what was worked out when too much was taken.
func (m *mark) tooMuch(what string) error {
	if m == nil {
		return errors.New("load the scroll: it takes " + what)
	}
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Too much is asked for", Subject: &m.at,
		Detail: fmt.Sprintf("To work this out takes %s. Values that double, and loops in loops, grow fast.", what),
	}
	all := &Diagnostics{All: hcl.Diagnostics{d}, Files: map[string]*hcl.File{}}
	if m.file != nil {
		all.Files[m.at.Filename] = m.file
	}
	return all
}

// bounded refuses a value that is beyond measure.
func (l *loader) bounded(value cty.Value, at hcl.Range) bool {
	if weigh(value, l.may.value) >= 0 {
		return true
	}
	l.fail("Value is too large", fmt.Sprintf("With all that is in it, it takes more than %d MiB. A large file is better named by a file's source.", l.may.value>>20), at)
	return false
}

// weigh is what a value leaves of an allowance; where it is used up, it is not looked at
// any further.
func weigh(v cty.Value, left int) int {
	if left -= valueCost; left < 0 {
		return left
	}
	v, _ = v.Unmark()
	t := v.Type()
	switch {
	case v.IsNull() || !v.IsKnown():
	case t == cty.String:
		left -= len(v.AsString())
	case t.IsCollectionType() || t.IsTupleType() || t.IsObjectType():
		for it := v.ElementIterator(); it.Next() && left >= 0; {
			_, element := it.Element()
			left = weigh(element, left)
		}
	}
	return left
}

// more counts what a scroll declares. It says whether there may be so many.
func (l *loader) more(n int, at hcl.Range) bool {
	if l.declared += n; l.declared <= l.may.declared {
		return true
	}
	if !l.full {
		l.full = true
		l.fail("Too much is declared", fmt.Sprintf("With these, there are more than %d glyphs and instances in the scroll.", l.may.declared), at)
	}
	return false
}
