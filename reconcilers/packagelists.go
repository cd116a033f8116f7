package reconcilers

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// aptLists is what apt's package lists say of the names that were asked for. They
// change only with an update, so a host keeps what it learned.
type aptLists struct {
	mu       sync.Mutex
	updated  bool // this run fetched new ones
	known    map[string]*aptName
	provided map[string][]relation
	shown    map[string]string // stanzas, by "name=version"
}

// An aptName is what the lists say of one name.
type aptName struct {
	candidate string
	versions  []string // that can be had, newest first
	virtual   bool     // others provide it, and no package is called so
}

// lists asks apt about names, those that it was not asked about before, all in one
// call. A name that it does not know is nil.
func (h *Host) lists(ctx context.Context, names ...string) (map[string]*aptName, error) {
	h.apt.mu.Lock()
	defer h.apt.mu.Unlock()
	if h.apt.known == nil {
		h.apt.known = map[string]*aptName{}
	}
	var ask []string
	for _, name := range names {
		if _, ok := h.apt.known[name]; !ok && !slices.Contains(ask, name) {
			ask = append(ask, name)
		}
	}
	if len(ask) > 0 {
		slices.Sort(ask)
		out, err := h.Run(ctx, dpkgTimeout, append([]string{"apt-cache", "policy", "--"}, ask...)...)
		if err != nil {
			return nil, wrap(err, "ask apt about", strings.Join(ask, ", "))
		}
		said := readPolicy(string(out.Stdout))
		for _, name := range ask {
			h.apt.known[name] = said[name]
		}
	}
	all := map[string]*aptName{}
	for _, name := range names {
		all[name] = h.apt.known[name]
	}
	return all, nil
}

// list is lists for one name.
func (h *Host) list(ctx context.Context, name string) (*aptName, error) {
	all, err := h.lists(ctx, name)
	return all[name], err
}

// forgetLists drops what was learned from the lists: they are being updated.
func (h *Host) forgetLists() {
	h.apt.mu.Lock()
	defer h.apt.mu.Unlock()
	h.apt.known, h.apt.provided, h.apt.shown = nil, nil, nil
}

// readPolicy reads what apt-cache policy says.
func readPolicy(text string) map[string]*aptName {
	all := map[string]*aptName{}
	var at *aptName
	version := ""
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
		case line[0] != ' ':
			at = &aptName{virtual: true}
			all[strings.TrimSuffix(line, ":")] = at
		case at == nil:
		case strings.HasPrefix(line, "  Candidate: "):
			if at.candidate = strings.TrimPrefix(line, "  Candidate: "); at.candidate == "(none)" {
				at.candidate = ""
			}
		case strings.HasPrefix(line, " *** "), strings.HasPrefix(line, "     ") && line[5] != ' ':
			version, _, _ = strings.Cut(strings.TrimPrefix(trimmed, "*** "), " ")
			at.virtual = false
		case strings.HasPrefix(line, "      "):
			// A source: a priority and where. What only dpkg's own list has cannot be had.
			if _, where, _ := strings.Cut(trimmed, " "); where != "/var/lib/dpkg/status" && !slices.Contains(at.versions, version) {
				at.versions = append(at.versions, version)
			}
		}
	}
	return all
}

// pick chooses the version for a wish: apt's candidate where that fits, else the newest
// that does; none fits: "".
func (n *aptName) pick(wish string) string {
	if n == nil {
		return ""
	}
	if n.candidate != "" && versionFits(wish, n.candidate) && slices.Contains(n.versions, n.candidate) {
		return n.candidate
	}
	if wish == "" {
		return ""
	}
	best := ""
	for _, v := range n.versions {
		if versionFits(wish, v) && (best == "" || compareVersions(v, best) > 0) {
			best = v
		}
	}
	return best
}

// providers lists the packages that provide a name, each with the version that does.
func (h *Host) providers(ctx context.Context, name string) ([]relation, error) {
	h.apt.mu.Lock()
	defer h.apt.mu.Unlock()
	if all, ok := h.apt.provided[name]; ok {
		return all, nil
	}
	out, err := h.Run(ctx, dpkgTimeout, "apt-cache", "showpkg", "--", name)
	if err != nil {
		return nil, wrap(err, "ask apt what provides", name)
	}
	var all []relation
	_, reverse, _ := strings.Cut(string(out.Stdout), "\nReverse Provides:")
	for _, line := range strings.Split(reverse, "\n") {
		if field := strings.Fields(line); len(field) >= 2 {
			all = append(all, relation{name: field[0], op: "=", version: field[1]})
		}
	}
	if h.apt.provided == nil {
		h.apt.provided = map[string][]relation{}
	}
	h.apt.provided[name] = all
	return all, nil
}

// show asks apt what a version of a package says of itself.
func (h *Host) show(ctx context.Context, pinned string) (string, error) {
	h.apt.mu.Lock()
	defer h.apt.mu.Unlock()
	if stanza, ok := h.apt.shown[pinned]; ok {
		return stanza, nil
	}
	out, err := h.Run(ctx, dpkgTimeout, "apt-cache", "show", "--no-all-versions", pinned)
	if err != nil {
		return "", wrap(err, "ask apt about", pinned)
	}
	stanza, _, _ := strings.Cut(string(out.Stdout), "\n\n")
	if h.apt.shown == nil {
		h.apt.shown = map[string]string{}
	}
	h.apt.shown[pinned] = stanza
	return stanza, nil
}
