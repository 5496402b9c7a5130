package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/internal/humantime"
	"eventsv2/internal/view"
)

type tokensData struct {
	Tokens []view.Token
	// More is how many older tokens are not shown.
	More int
	Form tokenForm
	// MayMake reports whether the viewer can make tokens here.
	MayMake bool
	// Secret is the secret of the new token. It is shown once.
	Secret, Made string
}

// tokenForm holds the input for a token.
type tokenForm struct {
	Name, Canvases, Days, Problem string
	Verbs                         []verbBox
	// Validities are for how long the viewer can make a token.
	Validities []choice
}

type verbBox struct {
	Verb   access.Verb
	Ticked bool
}

// tokensShown is how many tokens a page lists, the newest first.
const tokensShown = 200

// maxTokenDays is the longest time that a form offers.
const maxTokenDays = 366

func (d *dashboard) tokens(r *http.Request) (string, any, error) {
	data, err := d.readTokens(r)
	data.Form.Days = defaultValidity(data.Form.Validities)
	if canvases := viewerOf(r).Identity.Canvases(access.Administer); canvases != nil {
		data.Form.Canvases = canvasLines(canvases)
	}
	return "Tokens", data, err
}

// validitiesFor are the times for a token that lasts no longer than it may; 0 is without a bound.
func validitiesFor(longest time.Duration) []choice {
	if longest == 0 {
		return append(slices.Clone(validities), choice{"", "until it is revoked"})
	}
	fitting := slices.DeleteFunc(slices.Clone(validities), func(c choice) bool { return time.Duration(numberOf(c.Value))*24*time.Hour > longest })
	return append(fitting, choice{"", "as long as a token of yours may be (" + humantime.Span(longest) + ")"})
}

// defaultValidity is 90 days, if that is among what there is, or the longest time.
func defaultValidity(choices []choice) string {
	const usual = "90"
	if slices.ContainsFunc(choices, func(c choice) bool { return c.Value == usual }) {
		return usual
	}
	return ""
}

func canvasLines(canvases []eventqueue.CanvasID) string {
	var lines []string
	for _, canvas := range canvases {
		lines = append(lines, canvas.String())
	}
	return strings.Join(lines, "\n")
}

// readTokens reads the tokens that the viewer administers: those of their own canvases.
func (d *dashboard) readTokens(r *http.Request) (data tokensData, err error) {
	who := viewerOf(r)
	if !who.MayAnywhere(access.Administer) {
		return data, forbidden(access.Administer)
	}
	list, err := access.NewTokens(d.Store.Schema(), d.Store.Pool()).List(r.Context())
	if err != nil {
		return data, err
	}
	slices.Reverse(list)
	data.Tokens = view.All(slices.DeleteFunc(list, func(t access.Token) bool { return !who.Administers(t.Grant) }), view.TokenOf)
	data.More = max(0, len(data.Tokens)-tokensShown)
	data.Tokens = data.Tokens[:len(data.Tokens)-data.More]
	data.MayMake = d.Queue != nil
	data.Form.Validities = validitiesFor(who.LongestToken())
	for _, verb := range access.Verbs() {
		if who.MayAnywhere(verb) {
			data.Form.Verbs = append(data.Form.Verbs, verbBox{verb, verb == access.Read})
		}
	}
	return data, nil
}

// makeToken makes a token and shows it, this once: a redirect could not carry it.
func (d *dashboard) makeToken(r *http.Request) (string, flash, error) {
	data, err := d.readTokens(r)
	if err != nil {
		return "", flash{}, err
	}
	token, mistake := readToken(r, &data.Form)
	if mistake == nil {
		mistake = token.Validate()
	}
	var made access.Token
	var secret string
	if mistake == nil {
		who := viewerOf(r)
		made, secret, err = access.NewTokens(d.Store.Schema(), d.Store.Pool()).CreateFor(r.Context(), who.Identity, who.actor(), token)
		if beyond := (*access.BeyondMakerError)(nil); errors.As(err, &beyond) {
			mistake, err = errors.New(view.Capital(beyond.Error())), nil
		}
	}
	switch {
	case mistake != nil:
		data.Form.Problem = clean(mistake.Error())
		return "", flash{}, mistaken("tokens", "Tokens", data)
	case errors.Is(err, access.ErrRefused):
		return "", flash{}, problem{http.StatusUnauthorized, "You are no longer logged in", "Nothing was changed. What you came in with has ended: log in again."}
	case err != nil:
		return "", flash{}, err
	}
	data.Secret, data.Made, data.Tokens = secret, made.Name, append([]view.Token{view.TokenOf(made)}, data.Tokens...)
	return "", flash{}, shown{http.StatusOK, "tokens", "Tokens", data}
}

// readToken returns the token that was written in a form, and leaves in the form what was written.
func readToken(r *http.Request, form *tokenForm) (token access.NewToken, mistake error) {
	form.Name, form.Canvases, form.Days = strings.TrimSpace(r.PostFormValue("name")), r.PostFormValue("canvases"), r.PostFormValue("days")
	token.Name = form.Name
	for i := range form.Verbs {
		form.Verbs[i].Ticked = slices.Contains(r.PostForm["verb"], string(form.Verbs[i].Verb))
	}
	for _, verb := range r.PostForm["verb"] {
		token.Verbs = append(token.Verbs, access.Verb(verb))
	}
	for _, text := range strings.Fields(form.Canvases) {
		canvas, err := eventqueue.ParseCanvasID(text)
		if err != nil {
			return token, fmt.Errorf("%q is no canvas: write a UUID in each line, or nothing for all canvases", line(text))
		}
		token.Canvases = append(token.Canvases, canvas)
	}
	if form.Days != "" {
		days := numberOf(form.Days)
		if days < 1 || days > maxTokenDays {
			return token, errors.New("Choose how long the token is valid")
		}
		token.For = time.Duration(days) * 24 * time.Hour
	}
	return token, nil
}

// revokeToken ends a token.
func (d *dashboard) revokeToken(r *http.Request) (string, flash, error) {
	who := viewerOf(r)
	if !who.MayAnywhere(access.Administer) {
		return "", flash{}, forbidden(access.Administer)
	}
	missing := problem{http.StatusNotFound, "There is no such token", "It is not one of yours, or the address was mistyped."}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return "", flash{}, missing
	}
	tokens := access.NewTokens(d.Store.Schema(), d.Store.Pool())
	token, err := tokens.Get(r.Context(), id)
	if err != nil {
		return "", flash{}, err
	}
	if token == nil || !who.Administers(token.Grant) {
		return "", flash{}, missing
	}
	revoked, err := tokens.Revoke(r.Context(), who.actor(), id)
	switch {
	case err != nil:
		return "", flash{}, err
	case revoked == nil:
		return "/tokens", refused("The token " + line(token.Name) + " was revoked before."), nil
	default:
		return "/tokens", done("The token " + line(token.Name) + " is revoked and no longer valid."), nil
	}
}
