package reconcilers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	aclDefault = "system.posix_acl_default"
	aclUser    = 0x02
	aclGroup   = 0x08
)

// An aclEntry says what one user, group or class of them may do: read 4, write 2, execute 1.
type aclEntry struct {
	tag, perm uint16
	id        uint32 // of aclUser and aclGroup
}

// noID is the id of entries that have none (acl(5)).
const noID = ^uint32(0)

// An acl is a POSIX access control list (acl(5)), in the kernel's order. One with three
// entries is what a mode says, and no file has it as an attribute.
type acl []aclEntry

// modeACL is what a mode says.
func modeACL(mode int) acl {
	return acl{
		{aclUserObj, uint16(mode >> 6 & 7), noID}, {aclGroupObj, uint16(mode >> 3 & 7), noID}, {aclOther, uint16(mode & 7), noID},
	}
}

// parseACL reads the attribute's form: a version, then entries of tag, permissions and id.
func parseACL(data []byte) (acl, error) {
	if len(data) < 4 || len(data)%8 != 4 || binary.LittleEndian.Uint32(data) != 2 {
		return nil, errors.New("it is in a form that this golem does not know")
	}
	var a acl
	for at := 4; at < len(data); at += 8 {
		a = append(a, aclEntry{
			binary.LittleEndian.Uint16(data[at:]), binary.LittleEndian.Uint16(data[at+2:]) & 7, binary.LittleEndian.Uint32(data[at+4:]),
		})
	}
	a.order()
	return a, nil
}

// bytes is the attribute's form.
func (a acl) bytes() []byte {
	data := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range a {
		data = binary.LittleEndian.AppendUint16(data, e.tag)
		data = binary.LittleEndian.AppendUint16(data, e.perm)
		data = binary.LittleEndian.AppendUint32(data, e.id)
	}
	return data
}

func (a acl) order() {
	slices.SortStableFunc(a, func(x, y aclEntry) int {
		if x.tag != y.tag {
			return int(x.tag) - int(y.tag)
		}
		return bytes.Compare(binary.BigEndian.AppendUint32(nil, x.id), binary.BigEndian.AppendUint32(nil, y.id))
	})
}

// perm is what an entry says; -1 where there is none.
func (a acl) perm(tag uint16, id uint32) int {
	for _, e := range a {
		if e.tag == tag && (e.id == id || tag != aclUser && tag != aclGroup) {
			return int(e.perm)
		}
	}
	return -1
}

func (a acl) mask() int { return a.perm(aclMask, noID) }

// set is the list with an entry, or without it where perm is -1.
func (a acl) set(tag uint16, id uint32, perm int) acl {
	next := slices.DeleteFunc(slices.Clone(a), func(e aclEntry) bool {
		return e.tag == tag && (e.id == id || tag != aclUser && tag != aclGroup)
	})
	if perm >= 0 {
		next = append(next, aclEntry{tag, uint16(perm), id})
	}
	next.order()
	return next
}

// named says whether some user or group beside the file's own has an entry.
func (a acl) named() bool {
	return slices.ContainsFunc(a, func(e aclEntry) bool { return e.tag == aclUser || e.tag == aclGroup })
}

// union is what the mask would be if nobody had set it: all that it bounds.
func (a acl) union() int {
	all := 0
	for _, e := range a {
		if e.tag == aclUser || e.tag == aclGroup || e.tag == aclGroupObj {
			all |= int(e.perm)
		}
	}
	return all
}

// mode is a mode with the permissions that the list says.
func (a acl) mode(mode int) int {
	group := a.mask()
	if group < 0 {
		group = a.perm(aclGroupObj, noID)
	}
	return mode&^0o777 | a.perm(aclUserObj, noID)<<6 | group<<3 | a.perm(aclOther, noID)
}

// A grant is one entry of golem's on a path, and what golem knows of the list without it.
type grant struct {
	tag   uint16
	id    uint32
	perm  int // that golem wrote; -1: none
	found int // that was there before golem; -1: none
	mask  int // that was there before golem; -1: none, noList: not even a list
	by    string
}

// noList stands for the mask where there was no default list.
const noList = -2

// put is the list with a grant that has its full effect: the mask is as wide as it needs.
func (a acl) put(tag uint16, id uint32, perm int) acl {
	mask := a.mask()
	if mask < 0 {
		mask = a.perm(aclGroupObj, noID)
	}
	return a.set(tag, id, perm).set(aclMask, noID, mask|perm)
}

// strip is the list without some of golem's grants on it, of which all are given. mask is
// the one beneath them, -1 for none. A mask that somebody set since is respected: it goes on
// where there still is a list, and else it is what the mode says of the group, as chmod(1)
// meant it.
func (a acl) strip(all, drop []grant, mask int) acl {
	if len(drop) == 0 {
		return a
	}
	was, next := a.mask(), a
	every, rest := 0, 0    // that golem wrote
	present, stays := 0, 0 // that its entries say by now
	for _, g := range all {
		every |= max(g.perm, 0)
		present |= max(a.perm(g.tag, g.id), 0)
		if !slices.Contains(drop, g) {
			rest |= max(g.perm, 0)
			stays |= max(a.perm(g.tag, g.id), 0)
		}
	}
	for _, g := range drop {
		if next.perm(g.tag, g.id) >= 0 { // one that is gone stays so
			next = next.set(g.tag, g.id, g.found)
		}
	}
	if was < 0 {
		return next
	}
	group := next.perm(aclGroupObj, noID)
	beneath, own := mask, true
	if beneath < 0 {
		beneath = group
	}
	is := was
	switch was {
	case beneath | every:
		is = beneath | rest
	case beneath | present:
		is = beneath | stays
	case a.union():
		is = next.union()
	default:
		own = false
	}
	if mask < 0 && !own {
		next = next.set(aclGroupObj, noID, was)
	}
	if mask < 0 && !next.named() {
		return next.set(aclMask, noID, -1)
	}
	return next.set(aclMask, noID, is)
}

// stripDefault is strip of a default list, which there may be none of (nil): where golem's
// entries were all that it was for, it goes.
func stripDefault(a acl, all, drop []grant, mask int) acl {
	if a == nil || len(drop) == 0 {
		return a
	}
	next := a.strip(all, drop, mask)
	if mask == noList && !next.named() {
		return nil
	}
	return next
}

// maskOf is a default list's mask, or that there is none.
func maskOf(standard acl) int {
	if standard == nil {
		return noList
	}
	return standard.mask()
}

// permText spells permissions as ls(1) does.
func permText(perm int) string {
	if perm < 0 {
		return "none"
	}
	text := []byte("---")
	for i, letter := range "rwx" {
		if perm>>(2-i)&1 == 1 {
			text[i] = byte(letter)
		}
	}
	return string(text)
}

// text spells a list as getfacl(1) does, in one line; names are the host's.
func (a acl) text(h *Host) string {
	var parts []string
	for _, e := range a {
		word, who := map[uint16]string{
			aclUserObj: "user", aclUser: "user", aclGroupObj: "group", aclGroup: "group", aclMask: "mask", aclOther: "other",
		}[e.tag], ""
		switch {
		case e.tag == aclUser && h != nil:
			who = h.userName(int(e.id))
		case e.tag == aclGroup && h != nil:
			who = h.groupName(int(e.id))
		case e.tag == aclUser || e.tag == aclGroup:
			who = strconv.FormatUint(uint64(e.id), 10)
		}
		parts = append(parts, word+":"+who+":"+permText(int(e.perm)))
	}
	return strings.Join(parts, ",")
}

// nodeACL is the access list of a node.
func nodeACL(n Node) acl {
	if data, ok := n.Xattrs[aclAccess]; ok {
		if a, err := parseACL(data); err == nil {
			return a
		}
	}
	return modeACL(n.Mode)
}

// withACLs is a node with other lists.
func (n Node) withACLs(access, standard acl) Node {
	own := map[string][]byte{}
	for name, value := range n.Xattrs {
		if name != aclAccess && name != aclDefault {
			own[name] = value
		}
	}
	if len(access) > 3 {
		own[aclAccess] = access.bytes()
	}
	if standard != nil {
		own[aclDefault] = standard.bytes()
	}
	n.Xattrs, n.Mode = own, access.mode(n.Mode)
	return n
}

// readACLs reads a path's lists: the access list, or what the mode says, and the default
// list, nil for none.
func readACLs(x xattrs, mode int) (access, standard acl, err error) {
	one := func(name string) (acl, error) {
		data, err := readGrowing(func(buf []byte) (int, error) { return x.get(name, buf) })
		if errors.Is(err, unix.ENODATA) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return parseACL(data)
	}
	if access, err = one(aclAccess); err == nil {
		standard, err = one(aclDefault)
	}
	if access == nil {
		access = modeACL(mode)
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = errNoACLs
	}
	return access, standard, err
}

var errNoACLs = fmt.Errorf("its file system keeps no ACLs")
