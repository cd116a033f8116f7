package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestArchiveOfRealTar: an archive that the host's own tar made is unpacked, repaired,
// changed for its next version and undeclared; the host is as it was.
func TestArchiveOfRealTar(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh(`set -e
mkdir -p /opt/tool/etc && printf 'theirs\n' >/opt/tool/etc/tool.conf && chmod 600 /opt/tool/etc/tool.conf
touch -d '2020-01-02 03:04:05.678' /opt/tool/etc/tool.conf && chmod 711 /opt/tool
useradd -r tool
mkdir -p /root/site /tmp/1/tool-1/bin /tmp/1/tool-1/etc /tmp/1/tool-1/lib/deep && cd /tmp/1
printf '#!/bin/sh\necho tool one\n' >tool-1/bin/tool && chmod 755 tool-1/bin/tool && ln tool-1/bin/tool tool-1/bin/toolx
echo conf >tool-1/etc/tool.conf && echo same >tool-1/lib/same && echo old >tool-1/lib/deep/old && ln -s same tool-1/lib/link
chmod 750 tool-1/lib/deep && chown -R nobody tool-1
tar czf /root/site/tool-1.tar.gz tool-1
cp -a tool-1 tool-2 && rm -r tool-2/lib/deep && echo new >tool-2/lib/new && printf '#!/bin/sh\necho tool two\n' >tool-2/bin/tool
tar cf /root/site/tool-2.tar tool-2 && rm -r /tmp/1`)
	found := m.print()
	scroll := func(file string) string {
		return fmt.Sprintf("archive \"/opt/tool\" {\n  source = %q\n  strip  = 1\n  group  = \"tool\"\n}\n", file)
	}
	m.declare(scroll("tool-1.tar.gz"))
	says(t, m.plan(), "+ archive:/opt/tool:tool-1.tar.gz install 6 files and 4 directories")
	says(t, m.plan(), "replaces 1 file not made by golem (etc/tool.conf); what was there is kept")
	m.apply()
	if said := m.must("/opt/tool/bin/toolx"); said != "tool one\n" {
		t.Errorf("the tool says %q", said)
	}
	says(t, m.sh("stat -c '%n %a %U %G' /opt/tool /opt/tool/bin/tool /opt/tool/lib/deep /opt/tool/etc/tool.conf /opt/tool/etc"),
		"/opt/tool 711 root root /opt/tool/bin/tool 755 root tool /opt/tool/lib/deep 750 root tool /opt/tool/etc/tool.conf 644 root tool /opt/tool/etc 755 root root")
	m.settled()

	// By hand: one changed, one away, one with another mode, a directory gone.
	m.sh("echo mine >/opt/tool/lib/same; rm -r /opt/tool/lib/deep; chmod 4755 /opt/tool/bin/tool")
	says(t, m.plan(), "! archive:/opt/tool:tool-1.tar.gz repair drifted: bin/tool has mode 4755, lib/deep is gone, lib/deep/old is gone and 1 more; 4 of its 10 paths; 1 file changed by hand: kept first")
	m.apply()
	says(t, m.golem(0, "kept", "list").stdout, "/opt/tool/lib/same")
	says(t, m.sh("cat /opt/tool/lib/same /opt/tool/lib/deep/old; stat -c %a /opt/tool/bin/tool"), "same old 755")
	m.settled()

	// The next version: unchanged files are the very same as before.
	inode := m.sh("stat -c '%i %y' /opt/tool/lib/same")
	m.declare(scroll("tool-2.tar"))
	says(t, m.plan(), "~ archive:/opt/tool:tool-2.tar replace files: 1 new (lib/new), 2 changed (bin/tool, bin/toolx), 1 removed (lib/deep/old), 3 as before")
	m.apply()
	if now := m.sh("stat -c '%i %y' /opt/tool/lib/same"); now != inode {
		t.Errorf("an unchanged file was %q and is %q", inode, now)
	}
	if m.exists("/opt/tool/lib/deep") || m.must("/opt/tool/bin/tool") != "tool two\n" {
		t.Error("the next version is not all there")
	}
	m.settled()

	// It moves, comes back by a rollback without its file, and goes.
	m.declare(strings.Replace(scroll("tool-2.tar"), "/opt/tool", "/srv/tool", 1))
	m.apply()
	if m.exists("/opt/tool/bin") || m.must("/srv/tool/bin/tool") != "tool two\n" {
		t.Error("it did not move")
	}
	m.sh("mv /root/site/tool-1.tar.gz /root/site/tool-2.tar /root")
	m.golem(0, "rollback", "--auto-approve", "--to", "3", "--name", "web")
	if m.exists("/srv/tool") || m.must("/opt/tool/bin/tool") != "tool two\n" {
		t.Error("it did not come back")
	}
	m.sh("mv /root/tool-1.tar.gz /root/tool-2.tar /root/site")
	m.destroy()
	m.same("after destroy", found)
}
