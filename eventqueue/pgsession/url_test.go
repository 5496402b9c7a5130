package pgsession_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// spellings are database URLs with the secret in them, of which most are wrong. What
// can be read leads to a port of this machine where nobody listens.
func spellings(secret string) []string {
	a, b := secret[:len(secret)/2], secret[len(secret)/2:]
	host := "host=127.0.0.1 port=1 sslmode=disable"
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	// Keyword strings.
	add("%s user=u dbname=d password=%s", host, secret)
	add("%s user=u dbname=d password = %s", host, secret)
	add("%s user=u dbname=d password= %s", host, secret)
	add("%s user=u dbname=d password =%s", host, secret)
	add("%s user=u dbname=d password\t=\t%s", host, secret)
	add("%s user=u dbname=d password = '%s", host, secret)
	add("%s user=u dbname=d password='%s", host, secret)
	add("%s user=u dbname=d password='%s'%s", host, a, b)
	add("%s user=u dbname=d password=\"%s\" sslmode=odd", host, secret)
	add("%s user=u dbname=d password = %s port=x", host, secret)
	add("%s user=u dbname=d password = '%s' port=x", host, secret)
	add("%s user=u password=%s %s dbname=d", host, a, secret)
	add("%s user=u password=x %s=y dbname=d", host, secret)
	add("%s user=u password=x y=%s dbname=d", host, secret)
	add("%s user=u dbname=d password %s", host, secret)
	add("%s user=u password %s dbname=d", host, secret)
	add("%s user=u password:%s dbname=d", host, secret)
	add("%s user=u dbname=d PASSWORD=%s", host, secret)
	add("%s user=u dbname=d Password = %s port=x", host, secret)
	add("%s user=u dbname=d pwd=%s", host, secret)
	add("%s user=u dbname=d password==%s port=x", host, secret)
	add("%s user=u dbname= password=%s", host, secret)
	add("user= password=%s %s dbname=d", secret, host)
	add("host= password=%s port=1 user=u", secret)
	add("%s user=u sslrootcert= password=%s", host, secret)
	add("%s user=u application_name= password=%s", host, secret)
	add("%s user=u:%s@127.0.0.1 dbname=d", host, secret)
	add("host=u:%s@127.0.0.1 port=1 dbname=d", secret)
	add("%s dbname=postgres://u:%s@127.0.0.1:1/d", host, secret)
	add("%s user=u dbname=d password=%s port=%s", host, secret, secret)
	add("%s user=u dbname=d password=%s sslmode=%s", host, secret, secret)
	add("%s user=u dbname=d password=%s connect_timeout=%s", host, secret, secret)
	add("%s user=u dbname=d options='-c x=%s' password=%s", host, secret, secret)
	add("%s user=u dbname=d options=%s", host, secret)
	add("%s,user=u,dbname=d,password=%s", host, secret)
	add("%s;user=u;dbname=d;password=%s", host, secret)
	add("Server=127.0.0.1;Port=1;User Id=u;Password=%s;", secret)
	// URLs.
	add("postgres://u:%s@127.0.0.1:1/d", secret)
	add("postgres://u:%s@127.0.0.1:1/d?sslmode=odd", secret)
	add("postgres://u:%s@127.0.0.1:x/d", secret)
	add("postgres://u:%s %s@127.0.0.1:1/d", a, secret)
	add("postgres://u:%s/%s@127.0.0.1:1/d", a, secret)
	add("postgres://u:%s?%s@127.0.0.1:1/d", a, secret)
	add("postgres://u:%s#%s@127.0.0.1:1/d", a, secret)
	add("postgres://u:%s%%zz%s@127.0.0.1:1/d", a, secret)
	add("postgres://u:%s@%s@127.0.0.1:1/d", a, secret)
	add("postgres://u:[%s]@127.0.0.1:1/d", secret)
	add("postgres://u@127.0.0.1:%s/d", secret)
	add("postgres://127.0.0.1:1/%s@u", secret)
	add("postgres://127.0.0.1:5/%s@127.0.0.1/d", secret)
	add("postgres://127.0.0.1:5?%s@127.0.0.1/d", secret)
	add("postgres://127.0.0.1:5?x=y&%s=@127.0.0.1/d", secret)
	add("postgres://127.0.0.1:1/d?user=u&password=%s&port=x", secret)
	add("postgres://127.0.0.1:1/d?user=u&Password=%s", secret)
	add("postgres://u@127.0.0.1:1/d?sslmode=disable password=%s", secret)
	add("postgres://u@127.0.0.1:1/d?application_name=a password=%s", secret)
	add("postgres:/u:%s@127.0.0.1:1/d?sslmode=disable", secret)
	add("postgress://u:%s@127.0.0.1:1/d?sslmode=disable", secret)
	add("jdbc:postgresql://127.0.0.1:1/d?user=u&password=%s", secret)
	add("\"postgres://u:%s@127.0.0.1:1/d\"", secret)
	add("DATABASE_URL=postgres://u:%s@127.0.0.1:1/d", secret)
	add(" \n postgres://u:%s@127.0.0.1:1/d?sslmode=odd\n", secret)
	add("u:%s@127.0.0.1:1/d", secret)
	add("%s", secret)
	return all
}

// secrets differ in what they hold: nothing special, and what ends a value.
var secrets = []string{"Tr0ub4dorHorse", "Tr0ub'4dorHorse", `Tr0ub\4dorHorse`, "Tr0ub%4dorHorse", "Tr0ub&4dor=Horse"}

// leak returns a piece of the secret that text shows.
func leak(text, secret string) string {
	const piece = 5 // letters
	for i := 0; i+piece <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+piece]) {
			return secret[i : i+piece]
		}
	}
	return ""
}

// No error shows a piece of the password, whatever is wrong with the URL.
func TestNoErrorShowsThePassword(t *testing.T) {
	t.Parallel()
	for _, secret := range secrets {
		for _, url := range spellings(secret) {
			ctx := testenv.Context(t)
			pool, err := pgstore.Open(ctx, url, "test", 1)
			if err == nil { // nobody is there, which is no error of Open
				err = pgstore.New(pool).Check(ctx)
				pool.Close()
			}
			_, upErr := migrations.Up(ctx, url)
			_, statusErr := migrations.Status(ctx, url)
			for _, err := range []error{err, upErr, statusErr} {
				if err == nil {
					t.Errorf("%q: no error", url)
				} else if piece := leak(fmt.Sprintf("%v %+v %#v", err, err, err), secret); piece != "" {
					t.Errorf("%q: the error shows %q: %v", url, piece, err)
				}
			}
		}
	}
}

// A server that can be reached does not show it either.
func TestNoServerShowsThePassword(t *testing.T) {
	t.Parallel()
	const secret = "Tr0ub4dorHorse"
	url := testenv.DatabaseURL(t)
	for _, rest := range []string{
		secret + "=x", "x." + secret + "=y", "timezone=" + secret, "search_path=a&" + secret + "=b", "statement_timeout=" + secret,
		"lock_timeout=1s%20password%3D" + secret, "options=-c%20" + secret + "%3D1", "options=-c%20DateStyle%3D" + secret, "role=" + secret,
	} {
		pool, err := pgstore.Open(context.Background(), with(url, rest), "test", 1)
		if err == nil {
			pool.Close()
			continue // x.name=y is a setting as any other
		}
		if piece := leak(err.Error(), secret); piece != "" {
			t.Errorf("%q: the error shows %q: %v", rest, piece, err)
		}
	}
}
