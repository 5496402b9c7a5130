package harness

import (
	"os"
	"testing"
)

func TestEmulatorVersionIsReadFromItsJar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	origin := "gcloud's " + dir + "/bin/cloud-pubsub-emulator"
	if got := emulatorVersion(origin); got != "of an unknown version" {
		t.Errorf("without a jar it is %q", got)
	}
	if err := os.WriteFile(dir+"/lib/cloud-pubsub-emulator-1.2.3-all.jar", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := emulatorVersion(origin); got != "1.2.3" {
		t.Errorf("it is %q, want 1.2.3", got)
	}
}
