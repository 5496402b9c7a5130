package handlingkey

import (
	"slices"
	"strings"
	"testing"
)

func TestCheckNamesTheMistake(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"order":                         "",
		"order.placed":                  "",
		"RECORD.FILE-2.größe_1":         "",
		"a.__":                          "",
		strings.Repeat("k", 255):        "",
		"":                              `"": a part is empty`,
		".placed":                       `".placed": a part is empty`,
		"order.":                        `"order.": a part is empty`,
		"order..placed":                 `"order..placed": a part is empty`,
		"order._":                       `"order._": a part is "_", which is reserved`,
		"order.is placed":               `"order.is placed": a part is "is placed": it may have letters, digits, _ and -`,
		"order/placed":                  `"order/placed": a part is "order/placed": it may have`,
		"order.\xff":                    `: it may have letters`,
		"order.\n":                      `: it may have letters`,
		"a." + strings.Repeat("k", 254): "is 256 bytes long: the limit is 255",
	} {
		err := Check(key)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", key, err, want)
		}
	}
	if err := CheckPart(strings.Repeat("k", 256)); err == nil || err.Error() != "is 256 bytes long: the limit is 255" {
		t.Errorf("a long part: %v", err)
	}
}

func TestChainBeginsWithTheFarthestParent(t *testing.T) {
	t.Parallel()
	for key, want := range map[string][]string{
		"order":           {"order"},
		"order.placed":    {"order", "order.placed"},
		"RECORD.FILE.ADD": {"RECORD", "RECORD.FILE", "RECORD.FILE.ADD"},
	} {
		if got := Chain(key); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestSplitTakesTheFirstPartForTheModule(t *testing.T) {
	t.Parallel()
	for key, want := range map[string][2]string{
		"order":           {"order", None},
		"order.placed":    {"order", "placed"},
		"RECORD.FILE.ADD": {"RECORD", "FILE.ADD"},
	} {
		if module, name := Split(key); [2]string{module, name} != want {
			t.Errorf("%s: got %q and %q, want %q", key, module, name, want)
		}
	}
}
