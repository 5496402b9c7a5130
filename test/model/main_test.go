package model_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"eventsv2/test/testenv"
)

// How much is tested by default: databases that work side by side, and steps of
// a sequence, on average.
const (
	databases = 6
	steps     = 50
)

// counts is what has been compared.
type counts struct{ sequences, steps atomic.Int64 }

// Of the queue, and of the crons.
var tried, cronTried counts

func TestMain(m *testing.M) {
	sequences := flag.Int("sequences", 600, "how many sequences of steps to try; -short: a fifth of them, of half as many steps")
	flag.Parse()
	// A failure is repeated by the seed that it prints; files would stay behind
	// and be tried for ever.
	preset("rapid.nofailfile", "true")
	// They wait for the database, most of the time.
	preset("test.parallel", strconv.Itoa(databases+1))
	preset("rapid.checks", strconv.Itoa((*sequences+databases-1)/databases))
	preset("rapid.steps", strconv.Itoa(steps))
	testenv.Main(m, func() {
		fmt.Printf("model: sequences=%d steps=%d cron_sequences=%d cron_steps=%d\n",
			tried.sequences.Load(), tried.steps.Load(), cronTried.sequences.Load(), cronTried.steps.Load())
	})
}

// preset sets a flag that the command line leaves open.
func preset(name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// checks is how many sequences rapid tries on each database.
func checks() int {
	n, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		panic(err)
	}
	if testing.Short() {
		n /= 5
	}
	return n
}
