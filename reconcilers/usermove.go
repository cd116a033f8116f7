package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// capture implements capturer: what is in a home that goes.
func (users) capture(_ context.Context, w *World, store Store, m motion[userState]) error {
	if !drops(m) {
		return nil
	}
	s := m.from
	stock, err := w.stock(s, w.Needed)
	if err != nil {
		return err
	}
	if stock.there && len(m.to.Hands) == 0 {
		s.Files = append(s.Files, stock.home)
	}
	s.Files = append(s.Files, stock.own...)
	if err := w.storeFiles(store, s.Files); err != nil {
		return err
	}
	m.step.Inverse = encode(s)
	return nil
}

// drops says that a motion takes away a home that golem made.
func drops(m motion[userState]) bool {
	return m.from.MadeHome != "" && (m.to.MadeHome == "" || m.undo && m.from.Home && !m.to.Home)
}

// move implements owner. What a tool does exactly is done by it; what is left is brought to
// the lines that are wanted.
func (u users) move(ctx context.Context, w *World, store Store, m motion[userState]) error {
	name := m.resource
	w.forget()
	now, err := u.look(ctx, w, name)
	if err != nil {
		return err
	}
	switch {
	case m.to.There && !m.reverse && !m.from.There:
		err = u.create(ctx, w, store, m, now)
	case m.to.There && now.There:
		if drops(m) {
			now.userNotes = m.from.userNotes
			err = w.dropHome(ctx, store, m, now)
		} else {
			err = u.change(ctx, w, m, now)
		}
	case !m.to.There && now.There:
		if now.uid() != m.from.uid() {
			return fmt.Errorf("remove the user %s: its uid is %d by now, not %d: %w", name, now.uid(), m.from.uid(), ErrMoved)
		}
		err = u.remove(ctx, w, store, m, now)
	}
	if err != nil {
		return err
	}
	err = w.editAccounts(ctx, store, m.step, func(a accounts) { mergeUser(a, name, m.from, m.to) })
	if err == nil && m.to.There {
		err = u.furnish(ctx, w, store, m)
	}
	return err
}

// create makes a new user, with a group of its own name where it is to have one. What a
// try before left half done is taken away first.
func (u users) create(ctx context.Context, w *World, store Store, m motion[userState], now userState) error {
	name := m.resource
	if !now.There && now.Shadow == m.from.Shadow && now.Own == m.from.Own {
		return u.add(ctx, w, store, m)
	}
	if now.There && now.uid() != m.to.uid() {
		return fmt.Errorf("make the user %s: it is there by now, with the uid %d: %w", name, now.uid(), ErrMoved)
	}
	if err := w.editAccounts(ctx, store, m.step, func(a accounts) { mergeUser(a, name, m.to, m.from) }); err != nil {
		return err
	}
	return u.add(ctx, w, store, m)
}

// add makes a user with the numbers that were planned, and its own group before it.
func (users) add(ctx context.Context, w *World, store Store, m motion[userState]) error {
	name, line := m.resource, m.to.Passwd
	if m.to.uid() < 0 || m.to.gid() < 0 {
		return fmt.Errorf("make the user %s: it has no number yet: %w", name, ErrMoved)
	}
	var system []string
	if m.glyph != nil && m.glyph.Attrs["system"] == true {
		system = []string{"--system"}
	}
	if m.from.Own == "" && m.to.Own != "" {
		argv := append([]string{"groupadd", "--gid", field(m.to.Own, grGID)}, system...)
		if err := w.tool(ctx, append(argv, "--", name)...); err != nil {
			return fmt.Errorf("make the group %s: %w", name, err)
		}
	}
	argv := append([]string{"useradd", "--no-log-init", "--no-create-home"}, system...)
	argv = append(argv, "--uid", field(line, pwUID), "--gid", field(line, pwGID), "--home-dir", field(line, pwHome), "--shell", field(line, pwShell))
	if comment := field(line, pwComment); comment != "" {
		argv = append(argv, "--comment", comment)
	}
	var groups []string
	for _, group := range m.to.groups() {
		if !m.from.in(group) {
			groups = append(groups, group)
		}
	}
	if len(groups) > 0 {
		argv = append(argv, "--groups", strings.Join(groups, ","))
	}
	spool := path.Join(w.setting("/etc/login.defs", "MAIL_DIR", "/var/mail"), name)
	before, err := w.Host.observe(w.d, spool, 0)
	if err != nil {
		return err
	}
	if err := w.tool(ctx, append(argv, "--", name)...); err != nil {
		return fmt.Errorf("make the user %s: %w", name, err)
	}
	return w.dropSpool(ctx, keepWith(store, m.step), spool, before)
}

// dropSpool removes the empty mail box that useradd makes on some hosts: mail makes its
// own, and nobody would know to whom an old one belongs.
func (w *World) dropSpool(ctx context.Context, keep keeper, spool string, before Node) error {
	now, err := w.Host.observe(w.d, spool, 0)
	if err != nil || before.Type != Absent || now.Type != File || now.Size > 0 {
		return err
	}
	b := w.Host.newBatch(w.Blobs, keep, 1)
	defer b.close()
	_, err = b.run(ctx, []*shift{{path: spool, from: now, to: absent(), temp: tempName()}})
	return err
}

// change lets the tools do what they do exactly. A step that is taken back is brought to
// the very lines by golem.
func (users) change(ctx context.Context, w *World, m motion[userState], now userState) error {
	if m.reverse {
		return nil
	}
	argv := []string{"usermod"}
	for _, f := range [][2]string{{"comment", "--comment"}, {"shell", "--shell"}} {
		if to := m.to.get(f[0]); to != now.get(f[0]) {
			argv = append(argv, f[1], to)
		}
	}
	if len(argv) > 1 {
		if err := w.tool(ctx, append(argv, "--", m.resource)...); err != nil {
			return fmt.Errorf("change the user %s: %w", m.resource, err)
		}
	}
	all, err := w.accounts()
	if err != nil {
		return err
	}
	for _, in := range m.to.In {
		_, shadowed := all.line(gshadowFile, in.Group)
		if now.in(in.Group) || in.At < lastPlace || shadowed < 0 && all[gshadowFile] != nil {
			continue // it has a place of its own among the members, or the tool would make a line
		}
		if err := w.tool(ctx, "gpasswd", "--add", m.resource, in.Group); err != nil {
			return fmt.Errorf("put the user %s into %s: %w", m.resource, in.Group, err)
		}
	}
	return nil
}

// remove takes a user away, with a home that goes.
func (users) remove(ctx context.Context, w *World, store Store, m motion[userState], now userState) error {
	if drops(m) {
		now.userNotes = m.from.userNotes
		if err := w.dropHome(ctx, store, m, now); err != nil {
			return err
		}
		w.forget()
	} else if err := w.putKeys(ctx, store, m.step, now, keysEditOf(m)); err != nil {
		return err
	}
	if now.Own != "" && m.to.Own != "" {
		return nil // userdel would take the group of its name with it
	}
	if err := w.tool(ctx, "userdel", "--", m.resource); err != nil {
		return fmt.Errorf("remove the user %s: %w", m.resource, err)
	}
	return nil
}

// furnish gives a user its home and its keys.
func (u users) furnish(ctx context.Context, w *World, store Store, m motion[userState]) error {
	w.forget()
	now, err := u.look(ctx, w, m.resource)
	if err != nil {
		return err
	}
	if hands := handsOf(m); m.to.Home && m.to.MadeHome != "" && (!now.Home || len(hands) > 0) {
		home := m.to
		home.Passwd = now.Passwd
		if m.undo {
			err = w.putFiles(ctx, keepWith(store, m.step), home.Files, func(string, Node) bool { return false })
		} else {
			err = w.makeHome(ctx, store, m.step, home)
		}
		if err == nil {
			err = w.handOver(ctx, keepWith(store, m.step), hands)
		}
		if err != nil {
			return err
		}
		w.forget()
		if now, err = u.look(ctx, w, m.resource); err != nil {
			return err
		}
	}
	return w.moveKeys(ctx, store, m, now)
}

// mergeUser brings the lines of a user from one state to another. What somebody else
// changed beside it stays.
func mergeUser(a accounts, name string, from, to userState) {
	place := func(file string) int {
		if at, ok := to.Places[file]; ok {
			return at
		}
		return -1
	}
	mergeLine(a, passwdFile, name, from.Passwd, to.Passwd, place(passwdFile))
	mergeLine(a, shadowFile, name, from.Shadow, to.Shadow, place(shadowFile))
	if line, _ := a.line(groupFile, name); to.Own != "" || from.Own != "" && len(members(line)) == 0 && field(line, grGID) == field(from.Own, grGID) {
		mergeLine(a, groupFile, name, from.Own, to.Own, place(groupFile))
		mergeLine(a, gshadowFile, name, from.OwnShadow, to.OwnShadow, place(gshadowFile))
	}
	mergeList(a, subuidFile, name, from.SubUID, to.SubUID, place(subuidFile), to.There)
	mergeList(a, subgidFile, name, from.SubGID, to.SubGID, place(subgidFile), to.There)
	mergeGroups(a, name, from, to)
}

// mergeLine changes those fields of a name's line that differ between from and to. In
// taking a step back only what still is as the step left it.
func mergeLine(a accounts, file, name, from, to string, at int) {
	now, _ := a.line(file, name)
	switch {
	case from == to:
	case to == "":
		a.put(file, name, "", -1)
	case now == "":
		a.put(file, name, to, at)
	case from == "":
		// A tool made it just now, with what golem leaves to it.
		for _, i := range []int{spHash, spExpires} {
			if value := field(to, i); file == shadowFile && value != "" {
				now = withField(now, i, value)
			}
		}
		a.put(file, name, now, at)
	default:
		for i, value := range strings.Split(to, ":") {
			if was := field(from, i); value != was && field(now, i) == was {
				now = withField(now, i, value)
			}
		}
		a.put(file, name, now, at)
	}
}

// mergeList is mergeLine for a file with any number of lines of a name. Those that a user
// got with its making go with it.
func mergeList(a accounts, file, name string, from, to []string, at int, there bool) {
	if a[file] == nil || slices.Equal(from, to) && there {
		return
	}
	a[file] = slices.DeleteFunc(a[file], func(line string) bool {
		return strings.HasPrefix(line, name+":") && !slices.Contains(to, line) && (!there || slices.Contains(from, line))
	})
	for _, line := range to {
		if !slices.Contains(a[file], line) && !slices.Contains(from, line) {
			if at < 0 || at > len(a[file]) {
				at = len(a[file])
			}
			a[file] = slices.Insert(a[file], at, line)
			at++
		}
	}
}

// mergeGroups puts a user into groups and takes it out of others.
func mergeGroups(a accounts, name string, from, to userState) {
	was, will := placesIn(from), placesIn(to)
	edit := func(file, group string, at func(membership) (int, []string)) {
		line, i := a.line(file, group)
		if i < 0 {
			return
		}
		list := members(line)
		is := slices.Index(list, name)
		m, wanted := will[group]
		_, had := was[group]
		place, among := at(m)
		switch {
		case wanted && !had && is < 0 && place >= 0:
			list = slices.Insert(list, placeAmong(list, name, among, place), name)
		case is >= 0 && !wanted && (had || !to.There), is >= 0 && wanted && !had && place < 0:
			list = slices.Delete(list, is, is+1)
		default:
			return
		}
		a.put(file, group, withField(line, grMembers, strings.Join(list, ",")), -1)
	}
	groups := map[string]bool{}
	for _, line := range slices.Concat(a[groupFile], a[gshadowFile]) {
		groups[field(line, 0)] = true
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		edit(groupFile, group, func(m membership) (int, []string) { return m.At, m.Among })
		edit(gshadowFile, group, func(m membership) (int, []string) { return m.AtShadow, m.AmongShadow })
	}
}

// placeAmong is where a name comes back into a list: behind the nearest of those that it
// stood behind, else before the nearest of those that it stood before, else by number.
func placeAmong(list []string, name string, among []string, place int) int {
	at := slices.Index(among, name)
	for i := at - 1; i >= 0; i-- {
		if there := slices.Index(list, among[i]); there >= 0 {
			return there + 1
		}
	}
	for i := at + 1; at >= 0 && i < len(among); i++ {
		if there := slices.Index(list, among[i]); there >= 0 {
			return there
		}
	}
	return min(place, len(list))
}

func placesIn(s userState) map[string]membership {
	all := map[string]membership{}
	for _, m := range s.In {
		all[m.Group] = m
	}
	return all
}

// freeID is a number that no user and no group has: the one after the highest of a file, as
// the tools take it, or for a system account the highest that is free.
func (w *World) freeID(all accounts, of string, system bool) (int, error) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(w.setting("/etc/login.defs", name, "")); err == nil {
			return n
		}
		return otherwise
	}
	taken := map[int]bool{}
	for _, file := range []string{passwdFile, groupFile} {
		for _, line := range all[file] {
			taken[idOf(line, pwUID)] = true
		}
	}
	low, high := number("UID_MIN", 1000), number("UID_MAX", 60000)
	if system {
		low, high = number("SYS_UID_MIN", 101), number("SYS_UID_MAX", 999)
		for id := high; id >= low; id-- {
			if !taken[id] && w.Host.ownerOf("passwd", id) == "" {
				return id, nil
			}
		}
		return 0, fmt.Errorf("find a free number: all from %d to %d are taken", low, high)
	}
	next := low
	for _, line := range all[of] {
		if id := idOf(line, pwUID); id >= next && id < high {
			next = id + 1
		}
	}
	for range high - low + 1 {
		if !taken[next] && w.Host.ownerOf("passwd", next) == "" {
			return next, nil
		}
		if next++; next > high {
			next = low
		}
	}
	return 0, fmt.Errorf("find a free number: all from %d to %d are taken", low, high)
}
