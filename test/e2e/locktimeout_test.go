package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneLockTimeoutForAll (I3, I4): the first program that starts sets it, another one
// is refused by name, eventctl goes by it, and it can be changed without a moment in
// which a lock of the old length is judged by the new one.
func TestOneLockTimeoutForAll(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "job")
	r.start("worker", map[string]string{"LOCK_TIMEOUT": "10m"}).await("worker started")
	for _, program := range []string{"worker", "cron"} {
		p := r.start(program, map[string]string{"LOCK_TIMEOUT": "1m"})
		if status := p.wait(); status == 0 || !strings.Contains(p.text(), "is 1m0s here and 10m0s in the database") ||
			!strings.Contains(p.text(), "eventctl settings set lock-timeout 1m0s") {
			t.Errorf("a %s with another lock timeout ended with status %d and said: %s", program, status, p.text())
		}
		r.start(program, nil).await(program + " started")
	}
	// Locked two minutes ago, which is long by the default and short by the truth.
	id := r.emit(event("other", `1`))[0]
	if _, err := r.pool.Exec(t.Context(), `UPDATE events_v2 SET locked_at = clock_timestamp() - interval '2 minutes', attempts = 1 WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	requeue := func(when string) {
		t.Helper()
		if out := r.eventctlSays("requeue", "--no-notify", id.String()); !strings.Contains(out, "is running") {
			t.Errorf("%s eventctl requeue says %q, want it refused", when, out)
		}
	}
	requeue("with a lock timeout of 10m")
	if out := r.eventctlSays("settings", "set", "lock-timeout", "1m"); !strings.Contains(out, "lock timeout: 1m0s, before that 10m0s") {
		t.Errorf("the change says %q", out)
	}
	requeue("while programs with the old lock timeout may run")
	r.start("worker", map[string]string{"LOCK_TIMEOUT": "1m"}).await("worker started")
	if out := r.eventctlSays("settings", "finalize"); !strings.Contains(out, id.String()) {
		t.Errorf("settling while event %s needs the old lock timeout says %q, want it refused", id, out)
	}
	if out := r.eventctlSays("settings", "finalize", "--force"); !strings.Contains(out, "lock timeout: 1m0s\n") {
		t.Errorf("settling by force says %q", out)
	}
	if out := r.eventctlSays("requeue", "--no-notify", id.String()); !strings.Contains(out, "requeued 1 event") {
		t.Errorf("when it is finalized eventctl requeue says %q", out)
	}
}

// eventctlSays runs a command and returns all that it says.
func (r *rig) eventctlSays(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(filepath.Join(binaries, "eventctl"), args...)
	for key, value := range r.environment {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	out, _ := cmd.CombinedOutput() // the status is in what it says
	return string(out)
}
