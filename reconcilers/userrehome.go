package reconcilers

import "context"

// The keys that golem gives a user stand in its home. Where the home becomes another, by
// golem or by somebody else, they go from the old one and come into the new one.

// A keysMove is what becomes of golem's keys with a step that gives a user another home.
type keysMove struct {
	// From is the home that they leave; "" for none. Was is its authorized_keys before the
	// step, Left the same without golem's, with the time that it gets.
	From     string  `json:"from,omitempty"`
	Was      *string `json:"was,omitempty"`
	WasTime  int64   `json:"was_time,omitempty"`
	Left     *string `json:"left,omitempty"`
	LeftTime int64   `json:"left_time,omitempty"`
	Unmakes  bool    `json:"unmakes,omitempty"` // golem's .ssh goes with the last key
	// Here is the new home's authorized_keys before the step.
	Here     *string `json:"here,omitempty"`
	HereTime int64   `json:"here_time,omitempty"`
}

// keysFound is a home's authorized_keys as it was before golem's keys.
type keysFound struct {
	Home string  `json:"home"`
	Keys *string `json:"keys,omitempty"`
	Time int64   `json:"time,omitempty"`
}

// foundKeys are the keys that were in the user's home before golem's.
func (k *userWork) foundKeys() keysFound {
	home := k.to.homeOf()
	if noted := k.to.FoundKeys; noted != nil && noted.Home == home {
		return *noted
	}
	if k.v.found.homeOf() != home {
		return keysFound{Home: home}
	}
	return keysFound{home, k.v.found.Keys, k.v.found.KeysTime}
}

// athome is a user as it would be seen with a home.
func (w *World) athome(s userState, home string) (userState, error) {
	s.Passwd = withField(s.Passwd, pwHome, home)
	s.Home, s.Keys, s.KeysTime = false, nil, 0
	err := w.lookHome(&s)
	return s, err
}

// rehome works out the keys of a user whose home is to be another than it is, or than golem
// left it: golem's leave the old one, and what is in the new one is looked at.
func (k *userWork) rehome() error {
	now, to := k.v.now.homeOf(), k.to.homeOf()
	at := now
	if len(k.to.Added) > 0 {
		at = k.v.left.homeOf()
	}
	if now == to && at == to {
		return nil
	}
	here, err := k.w.athome(k.to, to)
	if err != nil {
		return err
	}
	move := &keysMove{Here: here.Keys, HereTime: here.KeysTime}
	if at != to {
		if err := k.leaveKeys(move, at); err != nil {
			return err
		}
		k.to.MadeSSH, k.to.FoundKeys = false, nil
		if to != k.v.found.homeOf() {
			k.to.FoundKeys = &keysFound{to, here.Keys, here.KeysTime}
		}
	}
	k.to.Home, k.to.Keys, k.to.KeysTime, k.to.Moved = here.Home, here.Keys, here.KeysTime, move
	return nil
}

// leaveKeys takes golem's keys out of a home.
func (k *userWork) leaveKeys(move *keysMove, home string) error {
	was, err := k.w.athome(k.to, home)
	if err != nil {
		return err
	}
	passwd := k.to.Passwd
	k.to.Passwd, k.to.Keys, k.to.KeysTime = was.Passwd, was.Keys, was.KeysTime
	k.dropKeys(k.to.Added)
	move.From, move.Was, move.WasTime, move.Left, move.LeftTime = home, was.Keys, was.KeysTime, k.to.Keys, k.to.KeysTime
	move.Unmakes = was.MadeSSH && !k.to.MadeSSH
	k.to.Passwd = passwd
	return nil
}

// A keysEdit is what one authorized_keys becomes. time is what it gets where it becomes just
// that; 0 for the time of the step.
type keysEdit struct {
	home     string // "" for the user's
	from, to *string
	time     int64
	unmakes  bool // golem's .ssh goes with it
}

// keysEditOf is what becomes of the keys of a user that keeps its home.
func keysEditOf(m motion[userState]) keysEdit {
	return keysEdit{from: m.from.Keys, to: m.to.Keys, time: m.to.KeysTime, unmakes: m.from.MadeSSH && !m.to.MadeSSH}
}

// keysEdits are what becomes of a user's keys in all its homes.
func keysEdits(m motion[userState]) []keysEdit {
	move := m.to.Moved
	if m.undo {
		move = m.from.Moved
	}
	switch {
	case move == nil:
		return []keysEdit{keysEditOf(m)}
	case m.undo:
		return []keysEdit{
			{home: m.from.homeOf(), from: m.from.Keys, to: move.Here, time: move.HereTime, unmakes: m.from.MadeSSH},
			{home: move.From, from: move.Left, to: move.Was, time: move.WasTime},
		}
	}
	return []keysEdit{
		{home: move.From, from: move.Was, to: move.Left, time: move.LeftTime, unmakes: move.Unmakes},
		{from: move.Here, to: m.to.Keys, time: m.to.KeysTime},
	}
}

// moveKeys makes a user's keys what they are to be.
func (w *World) moveKeys(ctx context.Context, store Store, m motion[userState], now userState) error {
	for _, e := range keysEdits(m) {
		if e.from == nil && e.to == nil && !e.unmakes {
			continue
		}
		at := now
		if e.home != "" {
			var err error
			if at, err = w.athome(now, e.home); err != nil {
				return err
			}
		}
		if !at.Home {
			continue
		}
		if err := w.putKeys(ctx, store, m.step, at, e); err != nil {
			return err
		}
		w.forget()
	}
	return nil
}
