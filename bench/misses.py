"""Why a goal is missed: what a profile says, and the next step. By group and case; a star at the end: all cases that begin so."""

reasons = {
}
