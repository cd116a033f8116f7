package reconcilers

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golem/scrolls"
)

// The attributes that are one field of a line.
var userFields = map[string]struct {
	shadow bool
	at     int
}{
	"group": {false, pwGID}, "comment": {false, pwComment}, "home": {false, pwHome}, "shell": {false, pwShell},
	"password": {true, spHash}, "changed": {true, spChanged}, "expires": {true, spExpires},
}

func (s userState) get(attr string) string {
	f := userFields[attr]
	if f.shadow {
		return field(s.Shadow, f.at)
	}
	return field(s.Passwd, f.at)
}

func (k *userWork) get(attr string) string { return k.to.get(attr) }

// put changes a field and says so.
func (k *userWork) put(attr, value string) {
	f := userFields[attr]
	was := k.get(attr)
	if was == value {
		return
	}
	switch {
	case f.shadow:
		k.to.Shadow = withField(k.to.Shadow, f.at, value)
	default:
		k.to.Passwd = withField(k.to.Passwd, f.at, value)
	}
	k.told(attr, was, value)
}

// hides says that a glyph's attribute must not be shown.
func hides(g *scrolls.Glyph, attr string) bool { return g != nil && slices.Contains(g.Secret, attr) }

// told says what becomes of a field, without secrets.
func (k *userWork) told(attr, was, value string) {
	if attr != "password" && (hides(k.v.glyph, attr) || hides(k.v.old, attr)) {
		k.say("another %s", attr)
		return
	}
	switch attr {
	case "changed":
	case "group":
		k.to.Group = k.groupName(value)
		k.say("group %s → %s (files keep theirs)", k.groupName(was), k.to.Group)
	case "home":
		k.say("home %s → %s (%s)", emptyAs(was), emptyAs(value), k.ofHomes(was, value))
	case "expires", "password":
		k.toldSecret(attr, was, value)
	default:
		k.say("%s %s → %s", attr, emptyAs(was), emptyAs(value))
	}
}

// ofHomes says what becomes of the directories where a user's home changes.
func (k *userWork) ofHomes(was, home string) string {
	said := "nothing is moved there"
	if at, err := k.w.resolve(home, true); err != nil || !k.w.isDir(at.real) {
		said = "not there and not made; nothing is moved"
	}
	if made := k.to.MadeHome; made != "" && made == was {
		said += ", and " + quote(was) + " stays until the user goes"
	}
	return said
}

// toldSecret is told for what stands in shadow(5).
func (k *userWork) toldSecret(attr, was, value string) {
	fresh := !k.v.now.There
	switch {
	case attr == "expires" && fresh:
		k.say("expires %s", expiryText(value))
	case attr == "expires":
		k.say("expires %s → %s", expiryText(was), expiryText(value))
	case fresh:
		k.say("with a password")
	case value == "!"+was:
		k.say("locked")
	case was == "!"+value:
		k.say("unlocked")
	default:
		k.say("another password")
	}
}

func emptyAs(text string) string {
	if text == "" {
		return "none"
	}
	return quote(text)
}

func (k *userWork) groupName(gid string) string {
	id, err := strconv.Atoi(gid)
	if err != nil {
		return gid
	}
	return madeLater(k.w.Host.groupName(id), id)
}

// set has golem change a field.
func (k *userWork) set(attr, value string) {
	if k.get(attr) == value {
		return
	}
	k.put(attr, value)
	if !slices.Contains(k.to.Set, attr) {
		k.to.Set = append(k.to.Set, attr)
	}
}

// unset gives a field back that the glyph before had set. What a user was made with stays: a
// home or group of another name would have to be made, and files be given to it.
func (k *userWork) unset(attr string) {
	if slices.Contains(k.to.Set, attr) {
		k.revert(attr)
		return
	}
	if k.v.old == nil || k.v.old.Attrs[attr] == nil || k.v.found.There {
		return
	}
	switch attr {
	case "group":
		k.say("group stays %s", k.groupName(k.get(attr)))
	case "home":
		k.say("home stays %s", quote(k.get(attr)))
	}
}

// revert gives a field back, if it still is what golem set.
func (k *userWork) revert(attr string) {
	k.to.Set = slices.DeleteFunc(k.to.Set, func(a string) bool { return a == attr })
	if k.v.now.get(attr) != k.v.left.get(attr) {
		return
	}
	if k.v.found.There {
		k.put(attr, k.v.found.get(attr))
		return
	}
	k.put(attr, k.defaultOf(attr))
}

// defaultOf is what a field of a new user is where the scroll does not say.
func (k *userWork) defaultOf(attr string) string {
	system := k.v.glyph != nil && k.v.glyph.Attrs["system"] == true
	switch attr {
	case "home":
		if system {
			return "/nonexistent"
		}
		return "/home/" + k.v.Resource
	case "shell":
		if system {
			return "/usr/sbin/nologin"
		}
		return k.w.setting("/etc/default/useradd", "SHELL", "/bin/sh")
	case "password":
		return "!"
	case "changed":
		return k.get(attr)
	case "group":
		if k.to.Own != "" {
			return field(k.to.Own, grGID)
		}
		return k.get(attr)
	}
	return ""
}

// secrets works out what stands in shadow(5).
func (k *userWork) secrets() error {
	a := k.v.glyph.Attrs
	locked := boolOf(a, "locked")
	hash, hashed := a["password"].(string)
	expires, ends := a["expires"].(string)
	if k.to.Shadow == "" {
		if locked != nil || hashed || ends {
			return wrongAttr("name", "User has no shadow line", "the user %s has no line in %s: there is nowhere to put a password, a lock or a day to expire", k.v.Resource, shadowFile)
		}
		return nil
	}
	if ends {
		k.set("expires", expiryDays(expires))
	} else {
		k.unset("expires")
	}
	if !hashed {
		k.unset("changed")
	}
	if !hashed && locked == nil {
		k.unset("password")
		return nil
	}
	return k.setPassword(hash, locked)
}

// setPassword works out the field with the password: a hash, and before it a "!" where the
// account is locked. What the scroll leaves open is what lies beneath golem's doing.
func (k *userWork) setPassword(hash string, locked *bool) error {
	is := k.get("password")
	base := is
	if slices.Contains(k.to.Set, "password") && is == k.v.left.get("password") {
		if base = k.defaultOf("password"); k.v.found.There {
			base = k.v.found.get("password")
		}
	}
	bare, shut := strings.TrimLeft(base, "!"), strings.HasPrefix(base, "!")
	if hash != "" {
		shut = shut && bare != "" && bare != "*" // one without a password has none to lock
		bare = hash
		if strings.TrimLeft(is, "!") != hash {
			k.set("changed", today())
		}
	}
	if locked != nil {
		shut = *locked
	}
	switch {
	case !shut && (bare == "" || bare == "*") && strings.HasPrefix(is, "!"):
		return wrongAttr("locked", "Nothing to unlock", "the user %s has no password that could be unlocked: write one, as a hash, or leave locked out", k.v.Resource)
	case shut == strings.HasPrefix(is, "!") && bare == strings.TrimLeft(is, "!"):
	case shut:
		k.set("password", "!"+bare)
	default:
		k.set("password", bare)
	}
	return nil
}

// today is the day as shadow(5) counts it.
func today() string { return strconv.FormatInt(time.Now().Unix()/86400, 10) }

func expiryDays(text string) string {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return "" // never
	}
	return strconv.FormatInt(day.Unix()/86400, 10)
}

func expiryText(days string) string {
	n, err := strconv.ParseInt(days, 10, 64)
	if err != nil {
		return never
	}
	return time.Unix(n*86400, 0).UTC().Format(time.DateOnly)
}
