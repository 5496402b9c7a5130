-- Pause (by the user) and block (by an admin), per canvas, module and handler.
-- Locks: none on existing tables (everything here is new).

-- +goose Up
CREATE TYPE scheduling_rule_type AS ENUM ('pause', 'block');

CREATE SEQUENCE scheduling_rules_id_seq AS integer;

CREATE TABLE scheduling_rules (
    id           integer              NOT NULL DEFAULT nextval('scheduling_rules_id_seq'),
    rule_type    scheduling_rule_type NOT NULL,
    canvas_id    uuid                 NOT NULL,
    handler_name text                 NOT NULL,
    event_space  text                 NOT NULL,
    created_at   timestamp            NOT NULL DEFAULT now(),

    CONSTRAINT scheduling_rules_pkey PRIMARY KEY (id),
    -- I14: pausing twice equals pausing once.
    CONSTRAINT scheduling_rules_once UNIQUE (canvas_id, event_space, handler_name, rule_type)
);

ALTER SEQUENCE scheduling_rules_id_seq OWNED BY scheduling_rules.id;

-- +goose Down
DROP TABLE scheduling_rules;
DROP TYPE scheduling_rule_type;
