package pgsession

import (
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Postgres has times that Go or JSON have not: infinity, and years beyond 9999. Only SQL can write them. What is read is clamped,
// so that such a row takes no other away (I15): to the zero time, and to a time that is in the year 9999 in every time zone.
var (
	firstTime = microseconds(time.Time{})
	lastTime  = microseconds(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
)

// microseconds is a time as Postgres sends it.
func microseconds(t time.Time) int64 {
	return t.UnixMicro() - time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
}

// ClampTimes has a connection read every timestamptz as a time of the years 1 to 9999, whatever the database has.
func ClampTimes(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: clampingCodec{&pgtype.TimestamptzCodec{}}})
}

type clampingCodec struct{ *pgtype.TimestamptzCodec }

func (c clampingCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	plan := c.TimestamptzCodec.PlanScan(m, oid, format, target)
	if plan == nil || format != pgtype.BinaryFormatCode {
		return plan
	}
	return clampingPlan{plan}
}

type clampingPlan struct{ pgtype.ScanPlan }

func (p clampingPlan) Scan(src []byte, target any) error {
	if len(src) != 8 { // NULL
		return p.ScanPlan.Scan(src, target)
	}
	at := int64(binary.BigEndian.Uint64(src))
	if clamped := min(max(at, firstTime), lastTime); clamped != at {
		src = binary.BigEndian.AppendUint64(nil, uint64(clamped))
	}
	return p.ScanPlan.Scan(src, target)
}
