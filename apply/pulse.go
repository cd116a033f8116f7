package apply

import (
	"slices"
	"sync"
	"time"

	"golem/reconcilers"
	"golem/scrolls"
)

// A Doing is what a run is at. What is a few words of what is being done, empty where
// the key says it; Command is the external command that runs, if one does.
type Doing struct {
	Leaf    string
	Key     scrolls.Key
	What    string
	Command string
	Since   time.Time
}

// The first sign of life of a step about which nothing is heard, and the longest time
// between two: each comes after twice the time of the one before.
const (
	firstSign = 10 * time.Second
	rareSign  = 5 * time.Minute
)

// A pulse knows what a run is at, and shows that it is alive where nothing else is
// heard of it for a while.
type pulse struct {
	mu    sync.Mutex
	doing []*Doing // the innermost last
	timer *time.Timer
	gap   time.Duration
	// sign and changed are called when a sign of life is due, and when there is
	// something else to do; changed may be nil.
	sign    func(Doing)
	changed func(Doing)
}

// begin notes that something is done from now on; end, that it is no more. A leaf or key
// that it does not name is that of what it is part of.
func (p *pulse) begin(d Doing) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.doing); n > 0 {
		outer := p.doing[n-1]
		if d.Leaf == "" {
			d.Leaf = outer.Leaf
		}
		if d.Key == "" && d.What == "" {
			d.Key, d.What = outer.Key, outer.What
		}
	}
	d.Since = time.Now()
	p.doing = append(p.doing, &d)
	if p.timer == nil && p.sign != nil {
		p.gap = firstSign
		p.timer = time.AfterFunc(p.gap, p.due)
	}
	p.show()
	return func() { p.end(&d) }
}

func (p *pulse) end(d *Doing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = slices.DeleteFunc(p.doing, func(o *Doing) bool { return o == d })
	if len(p.doing) == 0 && p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.show()
}

// show hands on the innermost thing that is done.
func (p *pulse) show() {
	if p.changed == nil {
		return
	}
	if n := len(p.doing); n > 0 {
		p.changed(*p.doing[n-1])
		return
	}
	p.changed(Doing{})
}

// rest is called when something is heard of the run: the next sign is due later.
func (p *pulse) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.gap = firstSign
		p.timer.Reset(p.gap)
	}
}

// due gives a sign of the innermost thing that has lasted for a while. What began shortly
// after something was heard has lasted a little less than the silence.
func (p *pulse) due() {
	p.mu.Lock()
	var long Doing
	for _, d := range slices.Backward(p.doing) {
		if long = *d; time.Since(d.Since) >= firstSign/2 {
			break
		}
	}
	gap := min(2*p.gap, rareSign)
	ended := p.timer == nil
	p.mu.Unlock()
	if ended || long.Since.IsZero() {
		return
	}
	p.sign(long) // which, being told, makes the pulse rest
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.gap = gap
		p.timer.Reset(gap)
	}
}

// listen makes a run's pulse heard, and has the host say which commands run. The result
// ends that.
func (e *engine) listen() (end func()) {
	e.pulse.sign, e.pulse.changed = e.alive, e.o.Watch
	e.o.Host.Watch = func(c reconcilers.Command) func() { return e.pulse.begin(Doing{Command: c.Brief()}) }
	return func() {
		e.o.Host.Watch = nil
		e.telling.Lock()
		defer e.telling.Unlock()
		e.over = true // a sign that was on its way comes too late
	}
}

// alive tells of a step that takes long.
func (e *engine) alive(d Doing) {
	what := d.Command
	if what == "" {
		what = d.What
	}
	e.tell(Event{
		Type: "alive", Leaf: d.Leaf, Key: string(d.Key), Message: what,
		Elapsed: time.Since(d.Since).Round(time.Second).Seconds(),
	})
}
