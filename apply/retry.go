package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"golem/reconcilers"
	"golem/scrolls"
)

// patience is one leaf's: how often and how long it tries, under its policy.
type patience struct {
	policy scrolls.Retry
	now    func() time.Time
	wait   func(context.Context, time.Duration) error
	failed time.Time // the leaf's first failure; zero: none yet
}

// under begins what is done for a leaf, or for the end of the run, under its policy.
func (e *engine) under(leaf string, policy scrolls.Policy) {
	if policy.Retry.MaxAttempts == 0 { // none was written
		policy.Retry = scrolls.BuiltinPolicy.Retry
	}
	if e.w.Timeout = policy.Timeout; policy.Timeout == 0 {
		e.w.Timeout = scrolls.BuiltinPolicy.Timeout
	}
	wait := func(ctx context.Context, d time.Duration) error {
		defer e.pulse.begin(Doing{Leaf: leaf, What: "waiting to try again"})()
		return e.o.Host.Wait(ctx, d)
	}
	e.patience = &patience{policy: policy.Retry, now: e.o.Now, wait: wait}
}

// A tried is how often one glyph, trigger or check has failed, and how long it waits.
type tried struct {
	failures int
	delays   *backoff.ExponentialBackOff
}

// try calls an attempt until it succeeds, cannot be mended, or the patience is at its
// end. An attempt says what of it failed: each has tries and delays of its own. between
// is called before each attempt but the first, with what failed how often, the error and
// the delay. It returns how often the most stubborn was tried, and the last error.
func (p *patience) try(ctx context.Context, attempt func() (scrolls.Key, error), between func(key scrolls.Key, n int, err error, wait time.Duration) error) (int, error) {
	all := map[scrolls.Key]*tried{}
	tries := func(failed *tried) int {
		most := 1
		for _, one := range all {
			n := one.failures
			if one != failed {
				n++
			}
			most = max(most, n)
		}
		return most
	}
	for {
		key, err := attempt()
		if err == nil {
			return tries(nil), nil
		}
		one := all[key]
		if one == nil {
			one = p.fresh()
			all[key] = one
		}
		one.failures++
		if !reconcilers.Mendable(err) || ctx.Err() != nil {
			return tries(one), err
		}
		now := p.now()
		if p.failed.IsZero() {
			p.failed = now
		}
		wait := max(one.delays.NextBackOff(), 0)
		if one.failures >= p.policy.MaxAttempts || now.Add(wait).Sub(p.failed) > p.policy.MaxElapsed {
			return tries(one), err
		}
		if berr := between(key, one.failures, err, wait); berr != nil {
			return tries(one), errors.Join(err, berr)
		}
		if serr := p.wait(ctx, wait); serr != nil {
			return tries(one), err
		}
	}
}

func (p *patience) fresh() *tried {
	delays := &backoff.ExponentialBackOff{
		InitialInterval: min(p.policy.BaseDelay, p.policy.MaxDelay), RandomizationFactor: p.policy.JitterFraction,
		Multiplier: p.policy.BackoffMultiplier, MaxInterval: p.policy.MaxDelay,
	}
	delays.Reset()
	return &tried{delays: delays}
}

// persist calls an attempt as often as a leaf's patience lets it, and tells each retry.
func (e *engine) persist(ctx context.Context, leaf string, key scrolls.Key, attempt func() error) error {
	attempts, err := e.patience.try(ctx, func() (scrolls.Key, error) { return key, attempt() },
		func(_ scrolls.Key, n int, err error, wait time.Duration) error {
			e.tellRetry(leaf, key, n, err, wait)
			return nil
		})
	if r := e.report.at[leaf]; r != nil { // the last wave has one only where it acts
		r.attempted(attempts)
		r.tried(key, attempts)
	}
	return err
}

// enactAgain prepares a batch and enacts it, as often as the leaf's policy lets it. Once
// its intents are on disk, a retry captures nothing: it starts from what was captured,
// which the undo of the failed attempt has brought back.
func (e *engine) enactAgain(ctx context.Context, b *batch) (failed int, err error) {
	failures := map[scrolls.Key]int{}
	attempts, err := e.patience.try(ctx, func() (scrolls.Key, error) {
		if len(b.steps) == 0 {
			if err := e.prepare(ctx, b); err != nil || len(b.steps) == 0 {
				return failedKey(err), err
			}
		}
		var err error
		if failed, err = b.rec.Enact(ctx, e.w, e.store, b.turns); err != nil {
			return keyOf(b.turns[failed]), err
		}
		return "", nil
	}, func(key scrolls.Key, n int, err error, wait time.Duration) error {
		failures[key]++
		e.tellRetry(b.leaf.Path, key, n, err, wait)
		if len(b.steps) == 0 {
			e.w.Forget() // until then, others may change the host
			return nil
		}
		return e.takeBack(context.WithoutCancel(ctx), b.turns)
	})
	if len(b.steps) == 0 && len(failures) == 0 {
		return failed, err // no try was made, or none that could be made again
	}
	r := e.report.leaf(b.leaf.Path)
	r.attempted(attempts)
	for key, n := range failures {
		r.tried(key, n+1)
	}
	return failed, err
}

func (e *engine) tellRetry(leaf string, key scrolls.Key, n int, err error, wait time.Duration) {
	cause, _ := diagnose(err)
	e.tell(Event{
		Type: "retrying", Leaf: leaf, Key: string(key), Attempt: n, Delay: wait.Seconds(), Cause: cause,
		Message: fmt.Sprintf("%s; trying again in %s", err, wait.Round(time.Millisecond)),
	})
}

// takeBack undoes a batch's attempt, so that the next one starts where the first did.
func (e *engine) takeBack(ctx context.Context, turns []*reconcilers.Turn) error {
	for i := len(turns) - 1; i >= 0; i-- {
		s := turns[i].Step
		if err := reconcilers.OfStep(s).Undo(ctx, e.w, e.store, s); err != nil {
			return fmt.Errorf("take back %s before trying again: %w", about(s), err)
		}
	}
	return nil
}
