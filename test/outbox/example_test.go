package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
)

func placeOrder(ctx context.Context, conn *pgx.Conn, tenant string, cart int) (eventID int64, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (cart) VALUES ($1)`, cart); err != nil {
			return err
		}
		value, err := json.Marshal(map[string]int{"cart": cart})
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT events_emit($1, 'WORKER', 'order_placed', $2)`, tenant, string(value)).Scan(&eventID)
	})
	return eventID, err
}

// An order and its event commit together, in a program that knows nothing but
// Postgres.
func Example() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	id, err := placeOrder(ctx, conn, "0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11", 17)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("accepted as", id)
}
