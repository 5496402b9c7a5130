package eventctl

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

// withTokens runs f with the tokens of the database.
func (p *program) withTokens(ctx context.Context, f func(tokens *access.Tokens, by audit.Actor) error) error {
	return p.withStore(ctx, func(store *pgstore.Store, _ setup.Config) error {
		return f(access.NewTokens(store.Schema(), store.Pool()), actor(store))
	})
}

func createTokenCommand(p *program) *cobra.Command {
	var canvases []string
	var name, verbs string
	var valid time.Duration
	var unlessExists bool
	cmd := &cobra.Command{
		Use:   "create --name … --verbs …",
		Short: "Create a token, and print it this once",
		Long: "Create a token for the HTTP API and the dashboard. It is printed once: the database has only its hash. The verbs are\n" +
			"read, read_values (of events), emit, operate (pause, cancel, edit, retry) and administer (block, limit,\n" +
			"schedule, tokens), separated by commas, or all. Without --canvas the token is for all canvases. With --unless-exists nothing is created, and the\n" +
			"exit status is 0, while a token of that name is valid, whatever it may do: for scripts that are run again.",
		Example: "  eventctl token create --name deployments --verbs read,operate --for 2160h\n" +
			"  eventctl token create --name shop --verbs emit --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11\n" +
			"  eventctl token create --name local --verbs all --unless-exists",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&name, "name", "", "what the token is for, as the audit log shows it")
	cmd.Flags().StringVar(&verbs, "verbs", "", "what it may do")
	cmd.Flags().StringArrayVar(&canvases, "canvas", nil, "uuid or name of a `canvas` that it is for; may be repeated")
	cmd.Flags().DurationVar(&valid, "for", 0, "how long it is valid, as in 2160h (default: until it is revoked)")
	cmd.Flags().BoolVar(&unlessExists, "unless-exists", false, "create nothing while a token of that name is valid")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		token := access.NewToken{Name: name, For: valid}
		var err error
		if token.Verbs, err = access.ParseVerbs(verbs); err != nil {
			return badInput(fmt.Errorf("--%w", err))
		}
		for _, text := range canvases {
			canvas, err := eventqueue.ParseCanvasID(text)
			if err != nil {
				return badInput(fmt.Errorf("--canvas: %w", err))
			}
			token.Canvases = append(token.Canvases, canvas)
		}
		if err := token.Validate(); err != nil {
			return badInput(fmt.Errorf("--%w", err))
		}
		return p.withTokens(cmd.Context(), func(tokens *access.Tokens, by audit.Actor) error {
			create := tokens.Create
			if unlessExists {
				create = tokens.CreateUnlessExists
			}
			created, secret, err := create(cmd.Context(), by, token)
			if err != nil {
				return failed(err)
			}
			return p.writeCreatedToken(created, secret)
		})
	}
	return cmd
}

// writeCreatedToken prints the secret, or that there was a token already if it is "": its secret cannot be read again.
func (p *program) writeCreatedToken(token access.Token, secret string) error {
	doc := view.CreatedToken{Token: view.TokenOf(token), Secret: secret}
	if secret == "" {
		return p.writeLine(doc, fmt.Sprintf("nothing was created: the token %s, %s, of %s is valid; its secret was printed then, and only then",
			printing.Printable(token.Name), token.ID, doc.Created()))
	}
	return p.writeLine(doc, secret)
}

func listTokensCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Long:    "List the tokens by the time of their creation, those that were revoked or have expired as well. Secrets are never shown.",
		Example: "  eventctl token list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withTokens(cmd.Context(), func(tokens *access.Tokens, _ audit.Actor) error {
				list, err := tokens.List(cmd.Context())
				if err != nil {
					return failed(err)
				}
				return writeList(p, view.ListOf(list, view.TokenOf), "tokens", "ID  NAME  VERBS  CANVASES  CREATED  VALID", func(t view.Token) []any {
					return []any{t.ID, t.Name, t.VerbsText(), t.CanvasesText(), t.Created(), t.StateAndTime()}
				})
			})
		},
	}
}

func revokeTokenCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token, so that it is refused from now on",
		Long:    "Revoke a token, and those that were made with it, which holds from the next request on. The exit status is 3 if there is no such token, or it was revoked before.",
		Example: "  eventctl token revoke 0197a3c1-8a52-4bd0-9a5e-2f1c4a9d7e10",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return badInput(fmt.Errorf("%q is not the id of a token: see eventctl token list", args[0]))
			}
			return p.withTokens(cmd.Context(), func(tokens *access.Tokens, by audit.Actor) error {
				revoked, err := tokens.Revoke(cmd.Context(), by, id)
				switch {
				case err != nil:
					return failed(err)
				case revoked == nil:
					return notFound("there is no token %s that is not revoked", id)
				default:
					return p.writeLine(view.TokenOf(*revoked), "revoked the token "+revoked.Name)
				}
			})
		},
	}
}
