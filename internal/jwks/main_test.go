package jwks_test

import (
	"testing"

	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
