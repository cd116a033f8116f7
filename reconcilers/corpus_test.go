package reconcilers

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// corpusPackages are Debian packages whose configuration files are of all sorts, by name.
//
//go:embed testdata/packages.txt
var corpusPackages string

// A corpusFile is one configuration file that a package ships. Nobody here wrote it.
type corpusFile struct {
	pkg, path string // the path has no slash in front
	text      []byte
}

const (
	corpusVersion = "1"     // raised by whoever changes what is taken from a package
	corpusLargest = 2 << 20 // bytes of one file
	corpusFewest  = 200     // packages: an archive drops some over time
)

// corpus are the configuration files of the packages. They are fetched once, by this
// machine's apt with lists of its own, and kept in the user's cache. Where that cannot be,
// the test skips; in CI it fails.
func corpus(t *testing.T) []corpusFile {
	t.Helper()
	kept, err := keptCorpus()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("no packages to read: %v", err)
	default:
		t.Skipf("no packages to read: %v", err)
	}
	packed, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	var files []corpusFile
	packages := map[string]bool{}
	err = eachFile(bytes.NewReader(packed), func(name string, text []byte) error {
		pkg, rest, _ := strings.Cut(name, "/")
		packages[pkg] = true
		files = append(files, corpusFile{pkg, rest, text})
		return nil
	})
	if err != nil {
		t.Fatalf("read %s: %v", kept, err)
	}
	named := len(strings.Fields(corpusPackages))
	t.Logf("%d files of %d packages; %d packages are not in this machine's archive", len(files), len(packages), named-len(packages))
	if len(packages) < corpusFewest {
		t.Fatalf("only %d of %d packages could be had, fewer than %d", len(packages), named, corpusFewest)
	}
	return files
}

// keptCorpus is the archive of the files in the user's cache, made if it is not there.
func keptCorpus() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "/var/cache" // root without a home
	}
	dir := filepath.Join(cache, "golem-corpus")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	kept := filepath.Join(dir, fmt.Sprintf("%.16x.tar", sha256.Sum256([]byte(corpusVersion+corpusPackages))))
	lock, err := os.OpenFile(kept+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	work, err := os.MkdirTemp(dir, "fetch")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	debs, err := fetchPackages(work)
	if err != nil {
		return "", err
	}
	made := filepath.Join(work, "made.tar")
	if err := packCorpus(made, debs); err != nil {
		return "", err
	}
	return kept, os.Rename(made, kept)
}

// fetchPackages fetches the packages that the archive has, without a change to what this
// machine's own apt knows.
func fetchPackages(work string) ([]string, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("there is no %s here", tool)
		}
	}
	for _, dir := range []string{"lists/partial", "cache/archives/partial", "debs"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			return nil, err
		}
	}
	apt := func(tool string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		own := []string{"-q", "-o", "Dir::State::Lists=" + work + "/lists", "-o", "Dir::Cache=" + work + "/cache", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"}
		cmd := exec.CommandContext(ctx, tool, append(own, args...)...)
		cmd.Dir = filepath.Join(work, "debs")
		cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%s %s: %w: %.500s", tool, args[0], err, said.Bytes())
		}
		return string(out), err
	}
	if _, err := apt("apt-get", "update"); err != nil {
		return nil, err
	}
	policy, err := apt("apt-cache", append([]string{"policy"}, strings.Fields(corpusPackages)...)...)
	if err != nil {
		return nil, err
	}
	there := candidates(policy)
	if len(there) == 0 {
		return nil, errors.New("apt's sources have none of the packages")
	}
	_, err = apt("apt-get", append([]string{"download"}, there...)...)
	debs, _ := filepath.Glob(filepath.Join(work, "debs", "*.deb"))
	if len(debs) >= corpusFewest {
		err = nil // a few may have gone since the archive was listed
	}
	return debs, err
}

// candidates are the packages of an answer of apt-cache policy that can be installed.
func candidates(policy string) []string {
	var there []string
	name := ""
	for line := range strings.Lines(policy) {
		if line[0] != ' ' {
			name = strings.TrimSuffix(strings.TrimSpace(line), ":")
		}
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate: "); ok && version != "(none)" {
			there = append(there, name)
		}
	}
	return there
}

// packCorpus writes the configuration files of packages into one archive.
func packCorpus(made string, debs []string) error {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, deb := range debs {
		pkg, _, _ := strings.Cut(filepath.Base(deb), "_")
		data, err := exec.Command("dpkg-deb", "--fsys-tarfile", deb).Output()
		if err != nil {
			return fmt.Errorf("unpack %s: %w", deb, err)
		}
		err = eachFile(bytes.NewReader(data), func(name string, text []byte) error {
			if name = strings.TrimPrefix(path.Clean("/"+name), "/"); !isConfiguration(name) {
				return nil
			}
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: pkg + "/" + name, Size: int64(len(text)), Mode: 0o644}); err != nil {
				return err
			}
			_, err := w.Write(text)
			return err
		})
		if err != nil {
			return fmt.Errorf("unpack %s: %w", deb, err)
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(made, packed.Bytes(), 0o644)
}

// eachFile calls f for each regular file of an archive that is not too large.
func eachFile(r io.Reader, f func(name string, text []byte) error) error {
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || h.Size > corpusLargest {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := f(h.Name, text); err != nil {
			return err
		}
	}
}

// isConfiguration says whether a package's file is one that people edit, or is written as
// such ones are.
func isConfiguration(name string) bool {
	for _, dir := range []string{"etc/", "lib/systemd/", "usr/lib/systemd/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return slices.Contains(strings.Fields(".json .yaml .yml .toml .ini .conf .cnf .cfg .desktop .service"), path.Ext(name))
}
