-- A pump in SQL: what the driver does, inside the transaction of the test file.

create function tap.now_of(p_id bigint) returns timestamptz
language sql immutable
as $$
    select timestamptz '2026-09-09 00:00:00+00' + make_interval(mins => p_id::integer)
$$;

-- Makes the session of this test the writer.
create function tap.start() returns void
language plpgsql
as $$
begin
    perform msgx.acquire_writer(timestamptz '2026-09-09 00:00:00+00');
end;
$$;

create function tap.set(p_name text, p_value text) returns void
language plpgsql
as $$
begin
    perform msgx.set_setting(p_name, p_value, timestamptz '2026-09-09 00:00:00+00');
end;
$$;

create function tap.enqueue(p_id bigint, p_body text default null) returns bigint
language plpgsql
as $$
begin
    perform msgx.enqueue_messages('test', array[p_id], array[convert_to(coalesce(p_body, 'body ' || p_id), 'UTF8')],
                                  array['text'], null, tap.now_of(p_id));
    return p_id;
end;
$$;

create function tap.next_id() returns bigint
language sql stable
as $$
    select coalesce(max(s.message_id), 0) + 1 from msgx.proc_state s
$$;

-- One attempt: process, and on an error book the failure as the driver does. A SQLSTATE that stops the pump is only reported.
create function tap.attempt(p_id bigint, p_command jsonb, p_now timestamptz default null) returns jsonb
language plpgsql
as $$
declare
    v_now     timestamptz := coalesce(p_now, tap.now_of(p_id));
    v_command jsonb := p_command;
    v_state   text;
    v_text    text;
    v_detail  text;
    v_hint    text;
    v_error   jsonb;
begin
    if p_command -> 'meta' is not null and not p_command -> 'meta' ? 'SEQN' then
        v_command := tap.with_meta(p_command, jsonb_build_object('SEQN', p_id::text));
    end if;
    begin
        return msgx.process_message(p_id, v_command, v_now);
    exception when others then
        get stacked diagnostics v_state = returned_sqlstate, v_text = message_text, v_detail = pg_exception_detail,
            v_hint = pg_exception_hint;
    end;
    v_error := jsonb_build_object('sqlstate', v_state, 'error', v_text, 'detail', v_detail, 'hint', v_hint);
    if (select e.treatment from msgx.error_class e where v_state like e.sqlstate_prefix || '%'
         order by length(e.sqlstate_prefix) desc limit 1) = 'stop'
    then
        return v_error;
    end if;
    return msgx.record_failure(p_id, v_command -> 'meta', v_command - 'meta', v_state, null, v_text, v_now) || v_error;
end;
$$;

-- Enqueues the next id and makes one attempt.
create function tap.once(p_command jsonb) returns jsonb
language plpgsql
as $$
begin
    return tap.attempt(tap.enqueue(tap.next_id()), p_command);
end;
$$;

-- Enqueues the next id and retries at once until the message is terminal.
create function tap.send(p_command jsonb) returns jsonb
language plpgsql
as $$
declare
    v_id     bigint := tap.enqueue(tap.next_id());
    v_result jsonb;
begin
    for v_try in 1 .. 20 loop
        v_result := tap.attempt(v_id, p_command);
        exit when v_result ->> 'status' is null or v_result ->> 'status' <> 'FAILED';
    end loop;
    return v_result;
end;
$$;

-- STATUS[/CLASS][ SQLSTATE] of a message that is sent.
create function tap.outcome(p_command jsonb) returns text
language plpgsql
as $$
declare
    v_result jsonb := tap.send(p_command);
begin
    return concat_ws(' ', concat_ws('/', v_result ->> 'status', v_result ->> 'error_class'), v_result ->> 'sqlstate');
end;
$$;

-- Sends messages that are only there to prepare; anything but success ends the test.
create function tap.given(variadic p_commands jsonb[]) returns void
language plpgsql
as $$
declare
    v_result jsonb;
begin
    for v_at in 1 .. cardinality(p_commands) loop
        v_result := tap.send(p_commands[v_at]);
        if v_result ->> 'status' is distinct from 'SUCCEEDED' then
            raise exception 'preparation failed: %', v_result;
        end if;
    end loop;
end;
$$;

create function tap.queue(p_first bigint, p_last bigint) returns void
language plpgsql
as $$
begin
    perform tap.enqueue(g) from generate_series(p_first, p_last) g;
end;
$$;
