package browser_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"eventsv2/access"
)

var renewImages = flag.Bool("images", false, "make the pictures of the README anew, with what they were made of")

// Where the pictures of the README are, and what they were made of.
const (
	imagesDir = "../../../docs/images"
	madeOf    = "testdata/images"
	styles    = "../../../dashboard/assets/style.css"
)

// The pictures of the README show the pages as they are: each has a text with the words of its page that are the same in each run,
// and a mark of the style sheet, which are written together with it.
func TestImagesOfTheReadmeAreUpToDate(t *testing.T) {
	t.Parallel()
	s := newShop(t).likeTheDemo()
	p := s.visitor(access.Verbs()...)
	p.scheme("light")
	sheet, err := os.ReadFile(styles)
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"overview": "/",
		"event":    "/events/" + s.one(`SELECT min(id)::text FROM event_log WHERE status = 'FAILED'`),
		"failed":   "/failed",
		"handlers": "/handlers",
	} {
		p.open(path)
		p.until("there is a heading", `document.readyState === "complete" && document.querySelector("h1")`)
		text := fmt.Sprintf("style sheet %x\n%s\n", sha256.Sum256(sheet), p.fixedWords())
		at := filepath.Join(madeOf, name+".txt")
		if *renewImages {
			p.writeImage(filepath.Join(imagesDir, "dashboard-"+name+".png"))
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		made, err := os.ReadFile(at)
		if err != nil || string(made) != text {
			t.Errorf("docs/images/dashboard-%s.png is stale: make it anew with make browser IMAGES=1, and look at it (%v)\nit was made of\n%s\nand the page has\n%s", name, err, made, text)
		}
	}
}

var digits = regexp.MustCompile(`\d[\d.,]*`)

// fixedWords are the words of a page that do not depend on when it is read: what it names, and no values.
func (p *page) fixedWords() string {
	p.t.Helper()
	words := value[[]string](p, `[...document.querySelectorAll("nav a, h1, h2, h3, th, dt, label, button, figcaption strong")]
		.filter(e => e.getClientRects().length && !e.closest(".because, .troubles, td")).map(e => e.innerText.split("\n")[0].trim())`)
	return digits.ReplaceAllString(strings.Join(words, "\n"), "#")
}

// writeImage writes a picture of the part of the page that a screen shows.
func (p *page) writeImage(path string) {
	p.t.Helper()
	p.until("colours have changed", `document.getAnimations().every(a => a.playState !== "running")`)
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, fewColours(picture)); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// fewColours is a picture with its 256 most frequent colours, which makes a third of the file.
func fewColours(picture image.Image) image.Image {
	count := map[color.Color]int{}
	bounds := picture.Bounds()
	each := func(do func(x, y int, c color.Color)) {
		for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
			for x := bounds.Min.X; x < bounds.Max.X; x++ {
				do(x, y, picture.At(x, y))
			}
		}
	}
	each(func(_, _ int, c color.Color) { count[c]++ })
	colours := make(color.Palette, 0, len(count))
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	drawn := image.NewPaletted(bounds, colours[:min(len(colours), 256)])
	index := map[color.Color]uint8{}
	each(func(x, y int, c color.Color) {
		i, known := index[c]
		if !known {
			i = uint8(drawn.Palette.Index(c))
			index[c] = i
		}
		drawn.SetColorIndex(x, y, i)
	})
	return drawn
}
