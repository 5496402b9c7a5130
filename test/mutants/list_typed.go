package main

// typedMutants are about typed events, their chains of handlers, and bounded runs.
func typedMutants() []mutant {
	const chain, value, cursor = "eventqueue/chain.go", "eventqueue/typedvalue.go", "eventqueue/typedcursor.go"
	return []mutant{
		{"handlers-get-their-events-without-the-fence", "I5", chain, change("return run.CompleteTx(ctx, func", "return run.worker.queue.InTx(ctx, func"),
			queue("TestADispatchThatHasLostItsLockEmitsNothing")},
		{"failed-synchronous-handler-is-passed-over", "I1", chain, change("if err := call(ctx, h, within); err != nil {", "if err := call(ctx, h, within); err != nil && len(d.emits) == 0 {"),
			queue("TestAFailingSynchronousHandlerRepeatsTheEvent")},
		{"child-before-its-parent", "order", chain, change("return append(chain, key)", "return append([]string{key}, chain...)"), queue("TestTheChainRunsParentsFirst")},
		{"value-that-does-not-fit-is-tried-again", "I9", chain, change("return Permanent(err)", "return err"), queue("TestWhatDoesNotFitIsNotTriedAgain")},
		{"missing-field-is-nothing", "I8", value, change("if f.required && !found[i] {", "if false && !found[i] {"), queue("TestEachFieldIsNeeded")},
		{"null-is-nothing", "I8", value, change("return mistyped(raw, v.Type(), nil)", "return nil"), queue("TestWhatIsWrongIsNamed")},
		{"escaped-name-is-another-field", "I8", cursor, change("!bytes.ContainsRune(plain, '\\\\')", "!bytes.ContainsRune(plain, 0)"), queue("TestTheLastOfTwoFieldsStands")},
		{"worker-takes-more-than-its-bound", "I13", "eventqueue/allowance.go", change("min(a.left, most), a.freed", "most, a.freed"), queue("TestABoundKeepsNoSlots")},
	}
}
