package reconcilers

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// names are the users and groups of the host's own files (passwd(5), group(5)), read
// once. Under another root it is that root's users that count.
type names struct {
	users, groups       map[string]int
	userNames, grpNames map[int]string
}

func (h *Host) names() *names {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == nil {
		h.users = &names{
			users: map[string]int{}, groups: map[string]int{},
			userNames: map[int]string{}, grpNames: map[int]string{},
		}
		h.readNames("/etc/passwd", h.users.users, h.users.userNames)
		h.readNames("/etc/group", h.users.groups, h.users.grpNames)
	}
	return h.users
}

// forgetNames lets the host's users and groups be read anew, which a package's scripts
// may have changed.
func (h *Host) forgetNames() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users = nil
}

// newcomers lists users and groups that were not there before, each once, for people.
func (n *names) newcomers(before *names) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(n.users)) {
		if _, ok := before.users[name]; !ok {
			all = append(all, "user "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.groups)) {
		_, was := before.groups[name]
		if _, own := n.users[name]; !was && !own {
			all = append(all, "group "+name)
		}
	}
	return all
}

// readNames reads name:x:id lines. A tree without the file has no names, only ids.
func (h *Host) readNames(file string, ids map[string]int, byID map[int]string) {
	f, err := h.openAt(file)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		part := strings.SplitN(lines.Text(), ":", 4)
		if len(part) < 3 {
			continue
		}
		id, err := strconv.Atoi(part[2])
		if err != nil || id < 0 {
			continue
		}
		if _, ok := ids[part[0]]; !ok {
			ids[part[0]] = id
		}
		if _, ok := byID[id]; !ok {
			byID[id] = part[0]
		}
	}
}

// userID finds a user's number by name, or takes a number as it is.
func (h *Host) userID(name string) (int, error) {
	return h.id(name, "user", "passwd", h.names().users)
}

// groupID finds a group's number by name, or takes a number as it is.
func (h *Host) groupID(name string) (int, error) {
	return h.id(name, "group", "group", h.names().groups)
}

func (h *Host) id(name, what, database string, known map[string]int) (int, error) {
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	if id, ok := known[name]; ok {
		return id, nil
	}
	if h.Live() {
		if id, ok := h.askNSS(database, name); ok {
			return id, nil
		}
	}
	return 0, fmt.Errorf("no %s is called %q here", what, name)
}

// askNSS asks the system's name services, which may know users that no file lists.
func (h *Host) askNSS(database, name string) (int, bool) {
	out, err := h.Run(context.Background(), 10*time.Second, "getent", "--", database, name)
	if err != nil {
		return 0, false
	}
	part := strings.SplitN(strings.TrimSpace(string(out.Stdout)), ":", 4)
	if len(part) < 3 {
		return 0, false
	}
	id, err := strconv.Atoi(part[2])
	return id, err == nil
}

// userName spells a user for people: the name, or the number where there is none.
func (h *Host) userName(uid int) string {
	if name, ok := h.names().userNames[uid]; ok {
		return name
	}
	if name := h.unbornName(uid); name != "" {
		return name
	}
	return strconv.Itoa(uid)
}

func (h *Host) groupName(gid int) string {
	if name, ok := h.names().grpNames[gid]; ok {
		return name
	}
	if name := h.unbornName(gid); name != "" {
		return name
	}
	return strconv.Itoa(gid)
}

// ownerOf is the user or group that the name services give a number to; "" for none.
func (h *Host) ownerOf(database string, id int) string {
	if !h.Live() {
		return ""
	}
	out, err := h.Run(context.Background(), 10*time.Second, "getent", "--", database, strconv.Itoa(id))
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(out.Stdout), ":")
	return name
}
