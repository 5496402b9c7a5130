package pgsession_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue/pgsession"
)

// TestUnreachableHostsAreToldFromRefusals: among the answers of several hosts, a single one that waiting
// cannot change decides.
func TestUnreachableHostsAreToldFromRefusals(t *testing.T) {
	t.Parallel()
	refusal := func(code string) error { return &pgconn.PgError{Code: code} }
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	other := errors.New("server refused TLS connection")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{refused, true},
		{fmt.Errorf("connect: %w", refused), true},
		{&net.DNSError{Name: "db", IsNotFound: true}, true},
		{io.ErrUnexpectedEOF, true},
		{context.DeadlineExceeded, true},
		{context.Canceled, false},
		{refusal("57P03"), true},
		{refusal("57P01"), true},
		{refusal("53300"), true},
		{refusal("08006"), true},
		{refusal("58000"), true},
		{refusal("28P01"), false},
		{refusal("28000"), false},
		{refusal("3D000"), false},
		{refusal("42501"), false},
		{refusal("42P01"), false},
		{other, false},
		{pgsession.ErrTransactionPooling, false},
		{errors.Join(refused, refusal("57P03")), true},
		{errors.Join(refused, refusal("28P01")), false},
		{fmt.Errorf("connect: %w", errors.Join(refusal("3D000"), refused)), false},
		{errors.Join(refused, other), true}, // as where one host is a replica and the primary is away
	} {
		if got := pgsession.Unreachable(c.err); got != c.want {
			t.Errorf("Unreachable(%v) = %t", c.err, got)
		}
	}
}
