package main

// attributeMutants are about what an event carries from its emit to its handler, its history
// and its children.
func attributeMutants() []mutant {
	const attributes, claim, complete = "eventqueue/attributes.go", "eventqueue/pgstore/claim.go", "eventqueue/pgstore/complete.go"
	const target, tree = "eventqueue/httptarget/request.go", "eventqueue/inspect/tree.go"
	sent := []judge{{"./eventqueue/httptarget", []string{"TestAttributesAreExtensions"}}}
	return []mutant{
		{"attributes-are-not-checked", "I8", "eventqueue/limits.go", change("if err := checkAttributes(e.Attributes); err != nil {", "if err := checkAttributes(nil); err != nil {"),
			queue("TestAttributesThatAreRefused")},
		{"any-key-of-an-attribute", "I8", attributes, change("if (c < 'a' || c > 'z') &&", "if c < ' ' &&"), queue("TestAttributesThatAreRefused")},
		{"attributes-inject-headers", "I8", attributes, change("if unicode.IsControl(r) {", "if r == 0 && unicode.IsControl(r) {"), queue("TestAttributesThatAreRefused")},
		{"attributes-are-never-too-large-together", "I12", attributes, change("n > maxAttributesBytes {", "n < 0 {"), queue("TestAttributesThatAreRefused")},
		{"inheritance-is-not-limited", "I12", attributes, change("err != nil && len(e.Attributes) > 0 {", "err != nil && len(e.Attributes) < 0 {"), queue("TestTooMuchInherited")},
		{"what-is-inherited-wins", "I8", attributes, change("attributes.Over(h.of, e.Attributes)", "attributes.Over(e.Attributes, h.of)"), queue("TestEveryFormOfEmitInherits")},
		{"a-trace-refuses-a-child", "I1", attributes, change("if checkSize(traced) != nil {", "if traced == nil {"), queue("TestTooMuchInherited")},
		{"the-context-replaces-an-own-trace", "I8", attributes, change("; !own {", "; !own || h.parent == nil {"), queue("TestTheTraceIsAnAttribute")},
		{"a-child-does-not-know-its-parent", "I8", attributes, change("h.parent != nil && e.ParentID == 0 {", "h.parent != nil && e.ParentID < 0 {"), queue("TestEveryFormOfEmitInherits")},
		{"handlers-make-no-children", "I8", "eventqueue/worker/runcontext.go", change("if key == (attributes.ParentKey{}) {", "if key == (attributes.ParentKey{}) && c.made != nil && c.event == nil {"), queue("TestAHandlerSeesAndHandsOnAttributes")},
		{"a-trace-is-lost-with-its-notification", "I2", "eventqueue/worker/execute.go", change("cmp.Or(f.Event.Attributes[attributes.Traceparent], d.Traceparent)", "cmp.Or(f.Event.Attributes[attributes.Traceparent+\"2\"], d.Traceparent)"),
			queue("TestAHandlerSeesAndHandsOnAttributes")},
		{"attributes-of-a-batch-go-to-the-first", "I16", "eventqueue/pgstore/insert.go", change("texts[i] = new(attributes.Encode", "texts[0] = new(attributes.Encode"), stored("TestSuite")},
		{"a-claim-brings-no-attributes", "I8", claim, change("e.ParentID, e.Attributes = eventqueue.EventID(parent), of", "e.ParentID, _ = eventqueue.EventID(parent), of"), stored("TestSuite")},
		{"the-history-loses-attributes", "I8", complete, change("nullif(ordering_key, ''), attributes, parent_id, reason\n", "nullif(ordering_key, ''), NULL::jsonb, parent_id, reason\n"), stored("TestAttributesFromEventToHistoryAndBack")},
		{"a-retry-by-hand-loses-attributes", "I8", "eventqueue/pgstore/retry.go", change("CASE WHEN $4::text IS NULL THEN attributes ELSE", "CASE WHEN $4::text IS NULL THEN NULL::jsonb ELSE"),
			stored("TestAttributesFromEventToHistoryAndBack")},
		{"an-extension-replaces-one-of-cloudevents", "I8", target, change("_, taken := extensions[name]; taken && !names[name] || reserved[name]", "_, taken := extensions[name]; taken && names[name]"), sent},
		{"a-file-may-have-an-attribute-twice", "I8", "eventqueue/ndjson/parse.go", change("if _, twice := of[key]; twice {", "if _, twice := of[key]; twice && key == \"\" {"),
			[]judge{{"./eventqueue/ndjson", []string{"TestMistakesNameLineAndField"}}}},
		{"a-tree-is-never-too-large", "I12", tree, change("if len(all) >= limit {", "if len(all) < 0 {"), inspected("TestTree")},
		{"events-of-any-attribute-are-listed", "I16", "eventqueue/inspect/reader.go", change("if len(f.Attributes) == 0 {", "if len(f.Attributes) < 2 {"), inspected("TestListByAttributes")},
	}
}

// inspected are tests of package inspect.
func inspected(tests ...string) []judge { return []judge{{"./eventqueue/inspect", tests}} }
