package pgsession

import "github.com/jackc/pgx/v5"

// rowsOf calls end when its rows end.
type rowsOf struct {
	pgx.Rows
	end    func(err error) error // err is the error of the rows
	closed bool
	err    error
}

func (r *rowsOf) Close() {
	r.Rows.Close()
	if !r.closed {
		r.closed = true
		r.err = r.end(r.Rows.Err())
	}
}

func (r *rowsOf) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

func (r *rowsOf) Next() bool {
	next := r.Rows.Next()
	if !next {
		r.Close()
	}
	return next
}

func (r *rowsOf) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.Close()
	}
	return err
}

func (r *rowsOf) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		r.Close()
	}
	return values, err
}

// rowOf is the first of its rows.
type rowOf struct {
	rows pgx.Rows
	err  error
}

func (r *rowOf) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
