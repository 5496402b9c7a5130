package pgsession

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Settings are the settings of a connection, by name.
type Settings map[string]string

// startup is the only startup parameter that is sent: every pooler passes it on.
const startup = "application_name"

// needed is set on each connection, whatever the URL says: the statements of the
// queue depend on it.
var needed = Settings{
	// I7: a claim has to see rules that were committed while it waited.
	"default_transaction_isolation": "read committed",
	"client_encoding":               "UTF8",
	"standard_conforming_strings":   "on",
}

// TakeSettings takes the settings out of the startup parameters of config, which
// poolers refuse or drop, and returns them for [Prepare]. Those of defaults are
// added unless the URL has them, and those of always in any case.
func TakeSettings(config *pgconn.Config, defaults, always Settings) (Settings, error) {
	settings := Settings{}
	maps.Copy(settings, defaults)
	for name, value := range config.RuntimeParams {
		switch lower := strings.ToLower(name); lower {
		case startup:
			continue
		case "options":
			options, err := parseOptions(value)
			if err != nil {
				return nil, err
			}
			for name, value := range options {
				if _, set := config.RuntimeParams[name]; !set { // as with libpq, the more specific setting wins
					settings[name] = value
				}
			}
		default:
			settings[lower] = value
		}
		delete(config.RuntimeParams, name)
	}
	maps.Copy(settings, always)
	maps.Copy(settings, needed)
	return settings, nil
}

// parseOptions reads the settings of options=-c name=value. Nothing else of the
// server's command line can be set on a connection by SQL.
func parseOptions(options string) (Settings, error) {
	settings := Settings{}
	words := splitOptions(options)
	for i := 0; i < len(words); i++ {
		option, is := strings.CutPrefix(words[i], "--")
		if !is {
			if option, is = strings.CutPrefix(words[i], "-c"); is && option == "" && i+1 < len(words) {
				i++
				option = words[i]
			}
		}
		name, value, assigned := strings.Cut(option, "=")
		name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
		if !is || !assigned || !settingName.MatchString(name) {
			return nil, newURLError("options of the database URL (or PGOPTIONS) hold something other than -c name=value: " +
				"leave it out, and give settings as name=value of the database URL" + hidden)
		}
		settings[name] = value
	}
	return settings, nil
}

// splitOptions splits at blanks, except those after a backslash.
func splitOptions(options string) []string {
	var words []string
	var option strings.Builder
	for i := 0; i < len(options); i++ {
		switch c := options[i]; {
		case c == '\\' && i+1 < len(options):
			i++
			option.WriteByte(options[i])
		case strings.ContainsRune(" \t\n\r\v\f", rune(c)):
			if option.Len() > 0 {
				words = append(words, option.String())
				option.Reset()
			}
		default:
			option.WriteByte(c)
		}
	}
	if option.Len() > 0 {
		words = append(words, option.String())
	}
	return words
}

const (
	setSQL = `
SELECT set_config(name, value, false), pg_backend_pid()
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (name, value, place)
ORDER BY place`

	readBackSQL = `
SELECT current_setting(name, true), pg_backend_pid(), current_setting('transaction_read_only')
FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, place)
ORDER BY place`
)

// preparedKey marks a connection on which Prepare has succeeded.
const preparedKey = "eventsv2.prepared"

// Prepare sets the settings on a new connection, reads them back in another
// transaction, and refuses a read-only server. It takes two round trips.
func Prepare(ctx context.Context, conn *pgconn.PgConn, settings Settings) error {
	names := slices.Sorted(maps.Keys(settings))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = settings[name]
	}
	set, err := rows(conn.ExecParams(ctx, setSQL, [][]byte{array(names), array(values)}, nil, nil, nil))
	if err != nil {
		return notSet(err)
	}
	have, err := rows(conn.ExecParams(ctx, readBackSQL, [][]byte{array(names)}, nil, nil, nil))
	if err != nil {
		return fmt.Errorf("read back the settings of the connection: %w", err)
	}
	for i, name := range names {
		if i >= len(set) || i >= len(have) || string(set[i][1]) != string(have[i][1]) {
			return ErrTransactionPooling
		}
		if string(set[i][0]) != string(have[i][0]) {
			return fmt.Errorf("the setting %s was set on the connection and is not there in its next transaction: %w", shown(name), ErrTransactionPooling)
		}
	}
	if string(have[0][2]) == "on" {
		return errReadOnly
	}
	conn.CustomData()[preparedKey] = true
	return nil
}

// errReadOnly means that the database is read-only.
var errReadOnly = errors.New("the database is read-only, as a replica or by default (default_transaction_read_only): " +
	"name the primary, or ALTER DATABASE … RESET default_transaction_read_only and ALTER ROLE … RESET default_transaction_read_only")

// CheckWrites refuses a read-only server, which may be among the hosts of a pool: it
// is for pgconn.Config.ValidateConnect.
func CheckWrites(ctx context.Context, conn *pgconn.PgConn) error {
	readOnly, err := queryValue(ctx, conn, `SHOW transaction_read_only`)
	if err == nil && readOnly == "on" {
		err = errReadOnly
	}
	return err
}

// prepared reports whether Prepare has succeeded on the connection.
func prepared(conn *pgx.Conn) bool {
	_, is := conn.PgConn().CustomData()[preparedKey]
	return is
}

// notSet is why the settings were not set. The message of the server would name
// one that may be a piece of a password.
func notSet(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return fmt.Errorf("set the settings of the connection: %w", err)
	}
	for name := range namedSettings {
		if strings.Contains(refused.Message, `"`+name+`"`) {
			return fmt.Errorf("the server refuses the setting %s of the database URL (SQLSTATE %s)", name, refused.Code)
		}
	}
	return fmt.Errorf("the server refuses a setting of the database URL, which may also be a piece of a value that is not quoted (SQLSTATE %s)%s",
		refused.Code, hidden)
}

// namedSettings are the settings that errors name.
var namedSettings = map[string]bool{
	"statement_timeout": true, "lock_timeout": true, "idle_in_transaction_session_timeout": true, "idle_session_timeout": true,
	"transaction_timeout": true, "search_path": true, "timezone": true, "TimeZone": true, "datestyle": true, "DateStyle": true, "intervalstyle": true,
	"role": true, "synchronous_commit": true, "default_transaction_isolation": true, "default_transaction_read_only": true,
	"enable_seqscan": true, "jit": true, "client_encoding": true, "standard_conforming_strings": true, "work_mem": true,
}

func shown(name string) string {
	if namedSettings[name] {
		return name
	}
	return "of the database URL"
}

// array is a literal of an array of texts.
func array(texts []string) []byte {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = `"` + quote.Replace(text) + `"`
	}
	return []byte("{" + strings.Join(quoted, ",") + "}")
}

func rows(reader *pgconn.ResultReader) ([][][]byte, error) {
	result := reader.Read()
	return result.Rows, result.Err
}
