"""Count a lane anew from store and ledger. It shares no count with the worker, so the two can disagree."""

from durcore.figures import Tally
from durcore.ledger import Ledger
from durcore.store import Store


def count(store: Store, ledger: Ledger) -> Tally:
    """The tally of a lane, at its end or at the boundary of an attempt. Memory does not grow with the jobs.

    Its `open_steps` are the checkpoints of jobs that have not ended. What a design without checkpoints has behind it in
    the delivery under way stands nowhere: whoever goes on with that delivery adds it.
    """
    states = store.count_states()
    redeliveries, resumed = store.count_redeliveries()
    emails = ledger.email_counts()
    missing = sum(1 for job in store.jobs_in("finished") if ledger.emails(job) == 0) if emails[0] else 0
    return Tally(
        finished=states.get("finished", 0),
        lost=states.get("lost", 0),
        dead_lettered=states.get("dead_lettered", 0),
        model_calls=ledger.total_calls(),
        lost_job_calls=sum(ledger.calls(job) for job in store.jobs_in("lost", "dead_lettered")),
        duplicate_email_jobs=sum(jobs for each, jobs in emails.items() if each >= 2),
        missing_email_jobs=missing,
        emails_delivered=sum(each * jobs for each, jobs in emails.items()),
        redeliveries=redeliveries,
        resumed_jobs=resumed,
        checkpoint_writes=store.count_checkpoints(),
        open_steps=store.count_open_checkpoints(),
    )
