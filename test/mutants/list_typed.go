package main

// typedMutants are about typed events, their chains of handlers, and bounded runs.
func typedMutants() []mutant {
	const chain, value, cursor = "eventqueue/typed/chain.go", "eventqueue/typed/value.go", "eventqueue/typed/cursor.go"
	return []mutant{
		{"handlers-get-their-events-without-the-fence", "I5", "eventqueue/worker/completetx.go", []edit{{"return x.complete(ctx, tx.DB)", "return nil"}, {"\tx.completed.Store(true)\n", ""}},
			typedEvents("TestADispatchThatHasLostItsLockEmitsNothing")},
		{"failed-synchronous-handler-is-passed-over", "I1", chain, change("if err := invoke.Handler(ctx, h, within); err != nil {", "if err := invoke.Handler(ctx, h, within); err != nil && len(d.emits) == 0 {"),
			typedEvents("TestAFailingSynchronousHandlerRepeatsTheEvent")},
		{"child-before-its-parent", "order", chain, change("return append(chain, key)", "return append([]string{key}, chain...)"), typedEvents("TestTheChainRunsParentsFirst")},
		{"value-that-does-not-fit-is-tried-again", "I9", chain, change("return eventqueue.Permanent(err)", "return err"), typedEvents("TestWhatDoesNotFitIsNotTriedAgain")},
		{"missing-field-is-nothing", "I8", value, change("if f.required && !found[i] {", "if false && !found[i] {"), typedEvents("TestEachFieldIsNeeded")},
		{"null-is-nothing", "I8", value, change("return mistyped(raw, v.Type(), nil)", "return nil"), typedEvents("TestWhatIsWrongIsNamed")},
		{"escaped-name-is-another-field", "I8", cursor, change("!bytes.ContainsRune(plain, '\\\\')", "!bytes.ContainsRune(plain, 0)"), typedEvents("TestTheLastOfTwoFieldsStands")},
		{"worker-takes-more-than-its-bound", "I13", "eventqueue/worker/budget.go", change("min(a.left, most), a.freed", "most, a.freed"), working("TestABoundKeepsNoSlots")},
	}
}
