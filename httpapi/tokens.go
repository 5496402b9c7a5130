package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/internal/view"
)

type newToken struct {
	Name             string   `json:"name" minLength:"1" maxLength:"100" doc:"What it is for, as the audit log shows it."`
	Verbs            []string `json:"verbs" minItems:"1" maxItems:"5" nullable:"false" enum:"read,read_values,emit,operate,administer"`
	Canvases         []string `json:"canvases,omitempty" minItems:"1" maxItems:"1000" nullable:"false" doc:"Absent: all."`
	ExpiresInSeconds int64    `json:"expires_in_seconds,omitempty" minimum:"1" maximum:"4000000000" doc:"At most as long as what the request came in with is valid; absent: as long as that."`
}

func (a *api) addTokens() {
	get(a, "/tokens", "list-tokens", "The tokens of the canvases that the caller administers, without their secrets", func(ctx context.Context, _ *struct{}) (*answer[view.Page[view.Token]], error) {
		if !callerOf(ctx).MayAnywhere(access.Administer) {
			return nil, errForbidden(access.Administer)
		}
		all, err := a.tokens.List(ctx)
		if err != nil {
			return nil, a.failed("tokens", err)
		}
		var found []access.Token
		for _, token := range all {
			if callerOf(ctx).Administers(token.Grant) {
				found = append(found, token)
			}
		}
		return list(view.ListOf(found, view.TokenOf)), nil
	})
	change(a, access.Administer, "POST /tokens", "create-token", "Create a token, and show it this once", a.createToken, creates)
	change(a, access.Administer, "DELETE /tokens/{id}", "revoke-token", "Revoke a token, from the next request on", a.revokeToken)
}

func (a *api) createToken(ctx context.Context, in *struct{ Body newToken }) (*answer[view.CreatedToken], error) {
	n := access.NewToken{Name: in.Body.Name, For: time.Duration(in.Body.ExpiresInSeconds) * time.Second}
	for _, verb := range in.Body.Verbs {
		n.Verbs = append(n.Verbs, access.Verb(verb))
	}
	for _, text := range in.Body.Canvases {
		canvas, err := eventqueue.ParseCanvasID(text)
		if err != nil {
			return nil, huma.Error422UnprocessableEntity("canvases: " + err.Error())
		}
		n.Canvases = append(n.Canvases, canvas)
	}
	if err := n.Validate(); err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	who := callerOf(ctx)
	token, secret, err := a.tokens.CreateFor(ctx, who.Identity, who.actor(), n)
	var beyond *access.BeyondMakerError
	switch {
	case errors.As(err, &beyond):
		return nil, huma.Error403Forbidden(beyond.Error())
	case errors.Is(err, access.ErrRefused):
		return nil, huma.Error401Unauthorized(access.ErrRefused.Error())
	case err != nil:
		return nil, a.failed("token", err)
	}
	return &answer[view.CreatedToken]{view.CreatedToken{Token: view.TokenOf(token), Secret: secret}}, nil
}

func (a *api) revokeToken(ctx context.Context, in *struct {
	ID string `path:"id" format:"uuid"`
}) (*answer[view.Token], error) {
	missing := huma.Error404NotFound("there is no such token that is not revoked")
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, huma.Error422UnprocessableEntity("id: is not a uuid")
	}
	token, err := a.tokens.Get(ctx, id)
	if err != nil {
		return nil, a.failed("token", err)
	}
	if token == nil || !callerOf(ctx).Administers(token.Grant) {
		return nil, missing
	}
	revoked, err := a.tokens.Revoke(ctx, callerOf(ctx).actor(), id)
	if err != nil {
		return nil, a.failed("token", err)
	}
	if revoked == nil {
		return nil, missing
	}
	return &answer[view.Token]{view.TokenOf(*revoked)}, nil
}
