package operate

import "context"

// Work works on one operation for a few seconds, and reports whether there was one.
func (o *Operations) Work(ctx context.Context) (worked bool, err error) {
	worked, _, err = o.work(ctx, nil, nil)
	return worked, err
}
