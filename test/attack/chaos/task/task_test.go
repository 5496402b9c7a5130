package task_test

import (
	"testing"

	"eventsv2/test/attack/chaos/task"
)

func TestTaskDecidesTheRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		do               task.Action
		times            int
		retries, attempt int
		want             task.Action
	}{
		{task.Succeed, 0, 5, 6, task.Succeed},
		{task.Permanent, 0, 0, 1, task.Permanent},
		{task.Fail, 2, 1, 2, task.Fail},
		{task.Fail, 2, 2, 3, task.Succeed},
		{task.Snooze, 1, 0, 1, task.Snooze},
		{task.Snooze, 1, 0, 2, task.Succeed},
		{task.Complete, 0, 3, 4, task.Complete},
		{task.Undo, 1, 0, 1, task.Undo},
		{task.Undo, 1, 1, 2, task.Complete},
	} {
		value := task.Task{Tag: "t", Do: test.do, Times: test.times}.Value()
		parsed, err := task.Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Now(test.retries, test.attempt); got != test.want {
			t.Errorf("%s, run with %d retries and attempt %d: %s, want %s", value, test.retries, test.attempt, got, test.want)
		}
	}
	if _, err := task.Parse([]byte("[]")); err == nil {
		t.Error("a list is a task")
	}
}
