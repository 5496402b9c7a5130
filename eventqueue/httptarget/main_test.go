package httptarget

import (
	"os"
	"testing"

	"eventsv2/test/testenv"
)

// alone is set in the process of a test that has one of its own.
const alone = "HTTPTARGET_TEST_ALONE"

func TestMain(m *testing.M) {
	if os.Getenv(alone) != "" {
		os.Exit(m.Run())
	}
	testenv.Main(m)
}
