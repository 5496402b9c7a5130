package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

// ruleWords are how the commands of one type of rule speak of it.
type ruleWords struct {
	rule       eventqueue.RuleType
	add, lift  string // commands
	done, over string // results
	who        string
}

func pauseWords() ruleWords {
	return ruleWords{eventqueue.PauseRule, "pause", "unpause", "paused", "unpaused", "the user"}
}

func blockWords() ruleWords {
	return ruleWords{eventqueue.BlockRule, "block", "unblock", "blocked", "unblocked", "an admin"}
}

// wordsOf are the words of a rule that was found.
func wordsOf(t eventqueue.RuleType) ruleWords {
	if t == eventqueue.BlockRule {
		return blockWords()
	}
	return pauseWords()
}

// ruleChange is the result of adding or lifting a rule.
type ruleChange struct {
	Rule    eventqueue.RuleType `json:"rule"`
	Canvas  eventqueue.CanvasID `json:"canvas_id"`
	Module  string              `json:"module"`
	Name    string              `json:"name"`
	Changed bool                `json:"changed"`
	// Known says that the handler has a waiting event or a cron definition.
	Known bool `json:"known"`
	// Notified is how many waiting events were notified; only of a lift.
	Notified *int `json:"notified,omitempty"`
	// Left are the rules that still hold the handler back; only of a lift.
	Left []eventqueue.RuleType `json:"rules_left,omitempty"`
}

func (a *app) addRuleCommand(words ruleWords) *cobra.Command {
	cmd := &cobra.Command{
		Use:   words.add + " --canvas … --module … --name …",
		Short: fmt.Sprintf("Hold back a handler on a canvas, in the name of %s, whatever the modifier", words.who),
		Args:  cobra.NoArgs,
	}
	flags := addScope(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		scope, err := flags.scope()
		if err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, config service.Config) error {
			return a.addRule(cmd.Context(), store, config, words, scope)
		})
	}
	return cmd
}

// addRule publishes nothing, so that the queue behind the rules is silent.
func (a *app) addRule(ctx context.Context, store *pgstore.Store, config service.Config, words ruleWords, scope eventqueue.Scope) error {
	queue, err := eventqueue.New(store, silence{}, eventqueue.QueueConfig{Limits: config.Limits()})
	if err != nil {
		return failed(err)
	}
	rules, err := eventqueue.NewRules(store, queue)
	if err != nil {
		return failed(err)
	}
	added, err := rules.Add(ctx, words.rule, scope)
	if err != nil {
		return failed(err)
	}
	change, err := a.changed(ctx, store, words.rule, scope, added)
	if err != nil {
		return err
	}
	return a.write(change, func(w io.Writer) {
		verb := words.done
		if !added {
			verb = "already " + words.done
		}
		_, _ = fmt.Fprintln(w, printableLines(verb+" "+scope.String()))
	})
}

// changed makes the result, and warns of a handler that nobody knows: the rule
// may be early, or misspelt.
func (a *app) changed(ctx context.Context, store *pgstore.Store, t eventqueue.RuleType, scope eventqueue.Scope, yes bool) (ruleChange, error) {
	change := ruleChange{Rule: t, Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Changed: yes}
	known, err := isKnown(ctx, store, scope)
	if err != nil {
		return change, failed(fmt.Errorf("the rule is changed; look up whether %s has events: %w", scope, err))
	}
	change.Known = known
	if !known && !a.json {
		a.complain("warning", fmt.Errorf("no event of %s is waiting at the moment; check the spelling if there should be", scope))
	}
	return change, nil
}

func isKnown(ctx context.Context, store *pgstore.Store, scope eventqueue.Scope) (bool, error) {
	has, err := store.HasEvents(ctx, scope)
	if err != nil || has || scope.Module != cronchecker.Module {
		return has, err
	}
	definitions, err := cronchecker.NewDefinitions(store.Pool()).List(ctx, &scope.Canvas)
	for _, d := range definitions {
		has = has || d.Name == scope.Name
	}
	return has, err
}

func (a *app) liftRuleCommand(words ruleWords) *cobra.Command {
	var silent bool
	cmd := &cobra.Command{
		Use:   words.lift + " --canvas … --module … --name …",
		Short: fmt.Sprintf("Let a handler run again that was %s, and notify its waiting events", words.done),
		Args:  cobra.NoArgs,
	}
	flags := addScope(cmd, true)
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		scope, err := flags.scope()
		if err != nil {
			return err
		}
		return a.withQueue(cmd.Context(), silent, func(bell *doorbell) error {
			return a.liftRule(cmd.Context(), bell, words, scope)
		})
	}
	return cmd
}

func (a *app) liftRule(ctx context.Context, bell *doorbell, words ruleWords, scope eventqueue.Scope) error {
	rules, err := eventqueue.NewRules(bell.store, bell.queue)
	if err != nil {
		return failed(err)
	}
	removed, notified, err := rules.Lift(ctx, words.rule, scope)
	if err != nil && removed {
		return failed(fmt.Errorf("the rule is lifted and %s notified; the relay notifies the rest: %w", plural(notified, "event"), err))
	}
	if err != nil {
		return failed(err)
	}
	change, err := a.changed(ctx, bell.store, words.rule, scope, removed)
	if err != nil {
		return err
	}
	left, err := bell.store.ListRules(ctx, pgstore.HandlerFilterOf(scope))
	if err != nil {
		return failed(fmt.Errorf("the rule is lifted; look up the rules that are left: %w", err))
	}
	change.Notified = &notified
	for _, rule := range left {
		change.Left = append(change.Left, rule.Type)
	}
	text := liftText(words, scope, change, bell.silent)
	if !removed {
		// The document says it, too; text would say it twice.
		return errors.Join(notFound("%s", text), a.write(change, func(io.Writer) {}))
	}
	return a.write(change, func(w io.Writer) { _, _ = fmt.Fprintln(w, printableLines(text)) })
}

// liftText says what the lift of a rule has done.
func liftText(words ruleWords, scope eventqueue.Scope, change ruleChange, silent bool) string {
	var b strings.Builder
	if change.Changed {
		b.WriteString(words.over + " " + scope.String())
	} else {
		b.WriteString(scope.String() + " was not " + words.done)
	}
	for _, t := range change.Left {
		b.WriteString("; still " + wordsOf(t).done + " by " + wordsOf(t).who)
	}
	switch {
	case !change.Changed || len(change.Left) > 0:
	case silent:
		b.WriteString("; left to the relay to notify: " + plural(*change.Notified, "event"))
	default:
		b.WriteString("; notified " + plural(*change.Notified, "event"))
	}
	return b.String()
}

type ruleDoc struct {
	Rule   eventqueue.RuleType `json:"rule"`
	Canvas eventqueue.CanvasID `json:"canvas_id"`
	Module string              `json:"module"`
	Name   string              `json:"name"`
	Since  time.Time           `json:"created_at"`
}

func (a *app) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rules", Short: "List the rules that hold handlers back", Args: cobra.NoArgs}
	flags := addScope(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, _ service.Config) error {
			rules, err := store.ListRules(cmd.Context(), filter)
			if err != nil {
				return failed(fmt.Errorf("list the rules: %w", err))
			}
			return a.writeRules(rules)
		})
	}
	return cmd
}

func (a *app) writeRules(rules []eventqueue.Rule) error {
	doc := struct {
		Rules []ruleDoc `json:"rules"`
	}{make([]ruleDoc, 0, len(rules))}
	rows := [][]string{{"RULE", "CANVAS", "MODULE", "NAME", "SINCE"}}
	for _, r := range rules {
		doc.Rules = append(doc.Rules, ruleDoc{r.Type, r.Canvas, r.Module, r.Name, r.CreatedAt.UTC()})
		rows = append(rows, []string{string(r.Type), r.Canvas.String(), printable(r.Module), printable(r.Name), clockTime(r.CreatedAt)})
	}
	return a.write(doc, func(w io.Writer) { writePage(w, rows, "rules", nil) })
}
