package reconcilers

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// accounts lists the users and groups that no package made, the users of packages and of the
// base that somebody put into further groups, and what else is not as the base has it.
func (s *scanner) accounts() ([]Proposal, error) {
	all, err := s.w.accounts()
	if err != nil {
		return nil, err
	}
	known, err := s.knownAccounts()
	if err != nil {
		return nil, err
	}
	var users, groups []Proposal
	own := map[string]bool{} // groups that come with their user
	for _, line := range all[passwdFile] {
		name := field(line, 0)
		if !accountName.MatchString(name) {
			continue // a comment, or a line of NIS
		}
		if why := s.userWhy(all, line, known); why != "" {
			users = append(users, Proposal{"user", name, why})
		}
		if group, _ := all.line(groupFile, name); group != "" && idOf(group, grGID) == idOf(line, pwGID) {
			own[name] = true
		}
	}
	for _, line := range all[groupFile] {
		if name := field(line, 0); accountName.MatchString(name) && !known.groups[name] && !own[name] && !s.scriptNames(name) {
			groups = append(groups, Proposal{"group", name, "no package made it"})
		}
	}
	return append(groups, users...), nil // a user names its groups
}

// userWhy says why a user is to be proposed; "" for not at all.
func (s *scanner) userWhy(all accounts, line string, known *knownAccounts) string {
	name := field(line, 0)
	var joined []string
	for _, m := range membershipsOf(all, name) {
		if !known.members[name+" "+m.Group] && !s.scriptNames(name, m.Group) {
			joined = append(joined, m.Group)
		}
	}
	base, isBase := known.users[name]
	switch {
	case !isBase && !(idOf(line, pwUID) < 1000 && s.scriptNames(name)):
		return "no package made it"
	case len(joined) > 0:
		return "in " + nounNames("group", joined) + ", and by no package"
	case isBase && base != "" && (field(line, pwShell) != field(base, pwShell) || field(line, pwHome) != field(base, pwHome)):
		return "not as the base has it"
	}
	if state, err := (users{}).look(s.ctx, s.w, name); err == nil && state.Keys != nil && slices.ContainsFunc(keyLines(*state.Keys), publicKey.MatchString) {
		return "SSH keys open it"
	}
	return ""
}

// knownAccounts are the users and groups that the base and packages declare.
type knownAccounts struct {
	users   map[string]string // by name; the line of the base, where it has one
	groups  map[string]bool
	members map[string]bool // "user group"
}

// knownAccounts reads what base-passwd and sysusers.d(5) declare.
func (s *scanner) knownAccounts() (*knownAccounts, error) {
	k := &knownAccounts{map[string]string{}, map[string]bool{}, map[string]bool{}}
	const base = "/usr/share/base-passwd/"
	err := s.lines(base+"passwd.master", func(line string) { k.users[field(line, 0)] = line })
	if err != nil {
		return nil, err
	}
	if err := s.lines(base+"group.master", func(line string) { k.groups[field(line, 0)] = true }); err != nil {
		return nil, err
	}
	for _, dir := range []string{"/usr/lib/sysusers.d", "/usr/share/sysusers.d"} {
		names, err := s.w.namesIn(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := s.lines(path.Join(dir, name), k.sysuser); err != nil {
				return nil, err
			}
		}
	}
	return k, nil
}

// sysuser notes a line of sysusers.d(5).
func (k *knownAccounts) sysuser(line string) {
	part := strings.Fields(line)
	if len(part) < 2 {
		return
	}
	switch strings.TrimRight(part[0], "!") {
	case "u":
		if _, ok := k.users[part[1]]; !ok {
			k.users[part[1]] = ""
		}
		k.groups[part[1]] = true
	case "g":
		k.groups[part[1]] = true
	case "m":
		if len(part) > 2 {
			k.members[part[1]+" "+part[2]] = true
		}
	}
}

// makesAccounts are the tools by which scripts of packages make accounts.
var makesAccounts = regexp.MustCompile(`\b(adduser|useradd|addgroup|groupadd|usermod|gpasswd)\b`)

// scriptNames says whether one script of a package that makes accounts has all of some words:
// the name of a user it makes, or that and the group it puts it into.
func (s *scanner) scriptNames(words ...string) bool {
	for _, script := range s.scripts {
		if !makesAccounts.MatchString(script) {
			continue
		}
		all := true
		for _, word := range words {
			all = all && regexp.MustCompile(`(^|[^\w.-])`+regexp.QuoteMeta(word)+`($|[^\w.-])`).MatchString(script)
		}
		if all {
			return true
		}
	}
	return false
}
