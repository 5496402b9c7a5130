package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice are the seed's random numbers. They are thrown by whoever passes the
// gate, one at a time, and by the controller.
type dice struct{ *rand.Rand }

func newDice(seed uint64, purpose string) dice {
	return dice{rand.New(rand.NewPCG(seed, hash(purpose)))}
}

// chance is true once in a while; 1 is always.
func (d dice) chance(p float64) bool { return d.Float64() < p }

// between returns a duration from least to most.
func (d dice) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(d.Int64N(int64(most-least)))
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

// mix is a random number that depends on its arguments alone, for those who
// throw without passing the gate.
func mix(seed uint64, parts ...uint64) uint64 {
	x := seed + 0x9e3779b97f4a7c15
	for _, p := range parts {
		x ^= p
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}
