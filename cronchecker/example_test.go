package cronchecker_test

import (
	"fmt"
	"time"

	"eventsv2/cronchecker"
)

func ExampleParseSchedule() {
	schedule, err := cronchecker.ParseSchedule("30 2 * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	slot := time.Date(2025, 3, 28, 12, 0, 0, 0, time.UTC)
	for range 3 {
		slot = schedule.Next(slot)
		fmt.Println(slot)
	}
	_, err = cronchecker.ParseSchedule("0 25 * * *", "Europe/Berlin")
	fmt.Println(err != nil)
	// Output:
	// 2025-03-29 02:30:00 +0100 CET
	// 2025-03-30 03:00:00 +0200 CEST
	// 2025-03-31 02:30:00 +0200 CEST
	// true
}
